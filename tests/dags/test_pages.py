"""The lake's pages, as the API server shows them: to whom, what, and what a form may do."""

import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from datetime import date
from html import escape, unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelib import Lake, StagedCommit, Table
from tests.dags.conftest import Lab, Place

ROOT = "/lake-status"
D1, D2 = date(2026, 11, 12), date(2026, 11, 13)
NASTY = "<script>alert(1)</script> \"quoted\" 'and' &amp;"
_SUITE = """name: "<b>positive"
expectations:
- {type: expect_column_values_to_be_between, kwargs: {column: amount, min_value: 0}, severity: critical}
"""
_TOKEN = re.compile(r'name="token" value="([^"]+)"')
_SCRIPT_FREE = "script-src 'self'"


@pytest.fixture(scope="module")
def shop(lake: Lake, place: Place) -> Table:
    """A table with a published day, and one that waits in quarantine, with names and reasons that are HTML."""
    (place.folder / "suite.yaml").write_text(_SUITE)
    lake.create_namespace("shop")
    table = lake.create_table(
        "shop.orders", "id BIGINT, dt DATE, amount BIGINT, name STRING", primary_key=["id"], partition_by=["dt"]
    )
    first = stage(table, D1)
    first.judge(place.folder / "suite.yaml")
    first.publish()
    return table


@pytest.fixture
def rejected(shop: Table, place: Place) -> StagedCommit:
    commit = stage(shop, D2, amount=-1)
    commit.judge(place.folder / "suite.yaml")
    return commit


def stage(table: Table, day: date, amount: int = 1) -> StagedCommit:
    data = pa.table(
        {
            "id": pa.array([day.day], pa.int64()),
            "dt": pa.array([day], pa.date32()),
            "amount": pa.array([amount], pa.int64()),
            "name": [NASTY],
        }
    )
    properties = {
        "partition": str(day),
        "partition_by": "day dt",
        "source": NASTY,
        "reads.shop.orders": "0",
        "reads_staged.shop.orders": "2 1f",
    }
    key = (f"airflow/ingest__shop__orders/manual__{day}", time.time_ns())
    return table.stage_upsert(data, properties=properties, idempotency_key=key)


def token_of(page: str) -> str:
    (found,) = _TOKEN.findall(page)
    return unescape(found)


def decide(lab: Lab, commit: StagedCommit, what: str, **given: Any) -> tuple[int, str]:
    """The form as the page of the commit has it, unless something else is given."""
    user, role = given.pop("user", "ada"), given.pop("role", "admin")
    headers = given.pop("headers", None)
    form = {"reason": "It was real.", **given}
    if "token" not in form:
        form["token"] = token_of(lab("visit", path=f"{ROOT}/commits/{commit.id}", user=user)[1])
    path = f"{ROOT}/commits/{commit.id}/{what}"
    status, text, _ = lab("visit", path=path, user=user, role=role, form=form, headers=headers)
    return status, text


PAGES = (
    "/",
    "/tables/shop.orders",
    f"/tables/shop.orders/partitions/{D1}",
    "/tables/shop.orders/checks",
    "/quarantine",
    "/commits/{commit}",
)
OF_ALL = ("/", "/quarantine")
OF_ONE = tuple(path for path in PAGES if path not in OF_ALL)


# Who may see them


@pytest.mark.parametrize("path", [*PAGES, *(f"/json{path}".rstrip("/") for path in PAGES), "/static/style.css"])
def test_nobody_sees_a_page_without_logging_in(lab: Lab, rejected: StagedCommit, path: str) -> None:
    assert lab("get", path=ROOT + path.format(commit=rejected.id))[0] == 401


@pytest.mark.parametrize("path", PAGES)
def test_a_viewer_sees_each_page_and_its_json(lab: Lab, rejected: StagedCommit, path: str) -> None:
    path = path.format(commit=rejected.id)
    status, text, headers = lab("visit", path=ROOT + path, user="victor", role="viewer")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert _SCRIPT_FREE in headers["content-security-policy"]
    assert "shop.orders" in text
    assert not re.search(r"<(script|link|img|iframe)[^>]+(https?:)?//", text), "it needs a network"
    status, text, headers = lab("visit", path=f"{ROOT}/json{path}".rstrip("/"), user="victor", role="viewer")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert "shop.orders" in json.dumps(json.loads(text))


@pytest.mark.parametrize("path", [*OF_ALL, *(f"/json{path}".rstrip("/") for path in OF_ALL)])
def test_who_may_not_read_its_dag_finds_no_table_among_all(lab: Lab, rejected: StagedCommit, path: str) -> None:
    status, text, _ = lab("visit", path=ROOT + path, user="norma", role="")
    assert (status, "shop.orders" in text, str(rejected.id) in text) == (200, False, False)


@pytest.mark.parametrize("path", [*OF_ONE, *(f"/json{path}" for path in OF_ONE), "/commits/{commit}/report"])
def test_who_may_not_read_its_dag_is_refused_what_is_of_a_table(lab: Lab, rejected: StagedCommit, path: str) -> None:
    status, text, _ = lab("visit", path=ROOT + path.format(commit=rejected.id), user="norma", role="")
    assert (status, "You may not see shop.orders" in text) == (403, True)


@pytest.mark.parametrize("what", ["publish", "discard"])
def test_who_may_not_read_its_dag_decides_nothing(lab: Lab, rejected: StagedCommit, what: str) -> None:
    token = token_of(lab("visit", path=f"{ROOT}/commits/{rejected.id}", user="norma", role="admin")[1])
    assert decide(lab, rejected, what, user="norma", role="", token=token)[0] == 403
    assert is_untouched(lab, rejected)


@pytest.mark.parametrize("path", [*PAGES, "/commits/{commit}/report"])
def test_whatever_others_have_written_is_text(lab: Lab, rejected: StagedCommit, path: str) -> None:
    rejected.discard(NASTY, NASTY)
    text = lab("visit", path=ROOT + path.format(commit=rejected.id), user="victor")[1]
    assert "<script>alert" not in text
    assert "<b>positive" not in text


def test_the_pages_are_in_the_navigation(lab: Lab) -> None:
    listed = json.loads(lab("visit", path="/api/v2/plugins", user="ada")[1])["plugins"]
    (plugin,) = [each for each in listed if each["name"] == "lake_pages"]
    assert [(view["name"], view["href"]) for view in plugin["external_views"]] == [("Lake", f"{ROOT}/")]
    for name in ("style.css", "page.js", "icon.svg"):
        assert lab("visit", path=f"{ROOT}/static/{name}", user="victor")[0] == 200
    assert lab("visit", path=f"{ROOT}/static/base.html", user="victor")[0] == 404


# What they say


def test_a_day_leads_to_its_commits_its_run_and_its_report(lab: Lab, rejected: StagedCommit) -> None:
    text = lab("visit", path=f"{ROOT}/tables/shop.orders", user="victor")[1]
    assert f'class="cell waiting" href="{ROOT}/tables/shop.orders/partitions/{D2}"' in text
    assert f'class="cell published" href="{ROOT}/tables/shop.orders/partitions/{D1}"' in text
    text = lab("visit", path=f"{ROOT}/tables/shop.orders/partitions/{D2}", user="victor")[1]
    assert f'href="/dags/ingest__shop__orders/runs/manual__{D2}"' in text
    assert f'href="{ROOT}/commits/{rejected.id}"' in text
    text = lab("visit", path=f"{ROOT}/commits/{rejected.id}", user="victor")[1]
    assert "0, and 2 commits of its transaction" in text
    status, report, headers = lab("visit", path=f"{ROOT}/commits/{rejected.id}/report", user="victor")
    assert (status, "Rejected" in report, "sandbox" in headers["content-security-policy"]) == (200, True, True)


def test_a_partition_may_be_called_anything(lab: Lab, shop: Table) -> None:
    odd = "a/b?c#<d> &e"
    commit = shop.stage_upsert(pa.table({"id": [1], "dt": [D1]}), properties={"partition": odd}, explicit_cast=True)
    text = lab("visit", path=f"{ROOT}/commits/{commit.id}", user="victor")[1]
    (path,) = set(re.findall(rf'href="({ROOT}/tables/shop.orders/partitions/[^"]+)"', text))
    status, text, _ = lab("visit", path=unescape(path), user="victor")
    assert (status, str(commit.id) in text, escape(odd) in text) == (200, True, True)
    commit.discard("ann", "odd")


def test_a_check_has_a_line_of_what_it_found(lab: Lab, rejected: StagedCommit) -> None:
    text = lab("visit", path=f"{ROOT}/tables/shop.orders/checks", user="victor")[1]
    assert len(re.findall(r"<polyline", text)) == 1
    assert f"{D2}: failed, 100.00 %" in text
    assert f"{D1}: passed, 0" in text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/tables/shop.none", 404),
        ("/tables/shop.none/checks", 404),
        ("/tables/none", 404),
        ("/commits/no-id", 404),
        ("/commits/00000000-0000-0000-0000-000000000000", 404),
        ("/nothing", 404),
    ],
)
def test_what_is_not_there_is_said(lab: Lab, shop: Table, path: str, status: int) -> None:
    assert lab("visit", path=ROOT + path, user="victor")[0] == status
    found = lab("visit", path=f"{ROOT}/json{path}", user="victor")
    assert (found[0], json.loads(found[1])["error"]["status"]) == (status, status)


# Deciding


def test_a_person_publishes_what_a_gate_has_rejected_by_name_and_reason(
    lab: Lab, lake: Lake, rejected: StagedCommit
) -> None:
    assert decide(lab, rejected, "publish", reason="  The sale\nwas real. ")[0] == 303
    assert rejected.state == "published"
    text = lab("visit", path=f"{ROOT}/commits/{rejected.id}", user="victor")[1]
    assert "ada: The sale was real." in text
    assert decide(lab, rejected, "publish", token="x")[0] == 403


def test_a_person_discards_a_commit_by_name_and_reason(lab: Lab, rejected: StagedCommit) -> None:
    assert decide(lab, rejected, "discard", reason="Half of it is missing.")[0] == 303
    text = lab("visit", path=f"{ROOT}/json/tables/shop.orders/partitions/{D2}", user="victor")[1]
    (told,) = [each for each in json.loads(text)["commits"] if each["id"] == str(rejected.id)]
    assert (told["state"], told["discarded_by"], told["discard_reason"]) == (
        "rejected",
        "ada",
        "Half of it is missing.",
    )
    assert 'class="discard"' not in lab("visit", path=f"{ROOT}/commits/{rejected.id}", user="ada")[1]


def test_a_viewer_gets_no_form_and_cannot_send_one(lab: Lab, rejected: StagedCommit) -> None:
    assert "<form" not in lab("visit", path=f"{ROOT}/commits/{rejected.id}", user="victor", role="viewer")[1]
    token = token_of(lab("visit", path=f"{ROOT}/commits/{rejected.id}", user="victor", role="admin")[1])
    for what in ("publish", "discard"):
        assert decide(lab, rejected, what, user="victor", role="viewer", token=token)[0] == 403
    assert is_untouched(lab, rejected)


@pytest.mark.parametrize("what", ["publish", "discard"])
def test_a_form_that_this_page_has_not_made_changes_nothing(
    lab: Lab, shop: Table, rejected: StagedCommit, what: str
) -> None:
    other = stage(shop, D2)
    token = token_of(lab("visit", path=f"{ROOT}/commits/{rejected.id}", user="ada")[1])
    of_another = token_of(lab("visit", path=f"{ROOT}/commits/{other.id}", user="ada")[1])
    of_bob = token_of(lab("visit", path=f"{ROOT}/commits/{rejected.id}", user="bob")[1])
    until, _, signature = token.partition(".")
    forged = [
        "",
        "x",
        ".",
        until,
        f"{int(until) + 1}.{signature}",
        f"1.{signature}",
        of_another,
        of_bob,
        f"٣.{signature}",
    ]
    assert [decide(lab, rejected, what, token=each)[0] for each in forged] == [403] * len(forged)
    assert decide(lab, rejected, what, token=token, headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert is_untouched(lab, rejected)
    other.reject("only for its token")


@pytest.mark.parametrize("reason", ["", "  \n ", "\x00", "x" * 2001])
@pytest.mark.parametrize("what", ["publish", "discard"])
def test_a_decision_without_a_reason_changes_nothing(lab: Lab, rejected: StagedCommit, what: str, reason: str) -> None:
    status, text = decide(lab, rejected, what, reason=reason)
    assert (status, "Nothing was changed." in text) == (400, True)
    assert is_untouched(lab, rejected)


def test_what_was_decided_meanwhile_is_said(lab: Lab, rejected: StagedCommit) -> None:
    token = token_of(lab("visit", path=f"{ROOT}/commits/{rejected.id}", user="ada")[1])
    rejected.publish(by="ann", reason="real")
    for what in ("publish", "discard"):
        status, text = decide(lab, rejected, what, token=token)
        assert (status, "nothing left to decide" in text) == (409, True)


def test_a_link_decides_nothing(lab: Lab, rejected: StagedCommit) -> None:
    for what in ("publish", "discard"):
        assert lab("visit", path=f"{ROOT}/commits/{rejected.id}/{what}", user="ada")[0] == 405
    assert is_untouched(lab, rejected)


def is_untouched(lab: Lab, commit: StagedCommit) -> bool:
    told = json.loads(lab("visit", path=f"{ROOT}/json/commits/{commit.id}", user="ada")[1])["commit"]
    return (told["state"], told["discarded_by"]) == ("rejected", None)


# When there is nothing to show


@pytest.fixture(params=["closed", "silent"])
def away(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a catalog: a port where nobody listens, and one where somebody listens and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if request.param == "closed":
            server.close()
        yield f"postgresql://nobody@127.0.0.1:{port}/none"


def test_a_catalog_that_is_away_is_said_soon(open_lab: Callable[..., Lab], away: str) -> None:
    lab = open_lab(LAKE_CATALOG=away)
    lab("visit", path=f"{ROOT}/static/style.css", user="victor")  # starting Airflow is not what takes time
    for path in ("/", "/tables/shop.orders", "/quarantine"):
        began = time.monotonic()
        status, text, headers = lab("visit", path=ROOT + path, user="victor")
        assert (status, headers["retry-after"], "The catalog is out of reach" in text) == (503, "5", True)
        told = lab("visit", path=f"{ROOT}/json{path}".rstrip("/"), user="victor")[1]
        assert json.loads(told)["error"]["status"] == 503
        assert time.monotonic() - began < 2 * 10


def test_where_there_is_no_lake_none_is_made(open_lab: Callable[..., Lab], tmp_path: Path) -> None:
    lab = open_lab(LAKE_CATALOG="", LAKE_WAREHOUSE=str(tmp_path / "none"))
    status, text, _ = lab("visit", path=f"{ROOT}/", user="victor")
    assert (status, "There is no lake" in text) == (404, True)
    assert not (tmp_path / "none").exists()


def test_a_wrong_spec_is_said_and_hides_nothing(open_lab: Callable[..., Lab], shop: Table, tmp_path: Path) -> None:
    lab = open_lab(LAKE_TABLES=str(tmp_path))
    assert "shop.orders" in lab("visit", path=f"{ROOT}/", user="victor")[1]
    (tmp_path / "wrong.yaml").write_text("table: <b>shop.wrong\n")
    text = lab("visit", path=f"{ROOT}/", user="victor")[1]
    assert "wrong.yaml" in text
    assert "shop.orders" in text
    assert "<b>shop.wrong" not in text
