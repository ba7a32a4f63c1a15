"""Whether a partition of a source has arrived, as who waits for it and who reads it ask."""

from pathlib import Path

import pytest

from lakelib.errors import InvalidInputError, NotFoundError
from lakelib.ops.arrival import check_arrival, find_arrival
from lakelib.specs.table_spec import TableSpec, parse_spec
from lakelib.storage.filesystem import Storage

DAY = "2026-11-18"


def _spec(folder: Path, arrival: str = "{}") -> TableSpec:
    source = f"{{path: '${{LANDING}}/orders/{{partition}}/*.json', arrival: {arrival}}}"
    text = "\n".join(
        [
            "table: shop.orders",
            "columns: id BIGINT, dt DATE",
            "primary_key: [id]",
            "partition_by: [dt]",
            "partition: {column: dt, every: day}",
            f"source: {source}",
        ]
    )
    return parse_spec(text, folder / "orders.yaml")


def _put(storage: Storage, path: str, content: bytes = b"") -> None:
    with storage.open_output(path) as stream:
        stream.write(content)


def test_files_alone_are_not_complete_before_their_marker_is_there(storage: Storage, tmp_path: Path) -> None:
    spec, environ = _spec(tmp_path), {"LANDING": storage.uri}
    found = find_arrival(storage, spec, DAY, environ)
    assert (found.files, found.is_complete) == ((), False)
    _put(storage, f"orders/{DAY}/a.json", b"{}\n")
    _put(storage, f"orders/{DAY}/a.txt", b"{}\n")
    found = find_arrival(storage, spec, DAY, environ)
    assert [file.uri for file in found.files] == [f"{storage.uri}/orders/{DAY}/a.json"]
    assert (found.is_complete, found.missing) == (False, f"{storage.uri}/orders/{DAY}/_READY")
    with pytest.raises(NotFoundError, match=f"there is no file at {storage.uri}/orders/{DAY}/_READY") as raised:
        check_arrival(spec, DAY, found)
    assert raised.value.kind == "missing_source"
    _put(storage, f"orders/{DAY}/_READY")
    found = find_arrival(storage, spec, DAY, environ)
    assert (found.is_complete, found.is_empty) == (True, False)
    check_arrival(spec, DAY, found)
    assert not find_arrival(storage, spec, "2026-11-19", environ).is_complete


def test_a_marker_without_files_that_hold_something_is_an_empty_partition(storage: Storage, tmp_path: Path) -> None:
    spec, environ = _spec(tmp_path), {"LANDING": storage.uri}
    _put(storage, f"orders/{DAY}/_READY")
    assert find_arrival(storage, spec, DAY, environ).is_empty
    _put(storage, f"orders/{DAY}/a.json")
    found = find_arrival(storage, spec, DAY, environ)
    assert (found.is_complete, found.is_empty, len(found.files)) == (True, True, 1)


def test_without_a_marker_one_file_is_enough(storage: Storage, tmp_path: Path) -> None:
    spec, environ = _spec(tmp_path, "{marker: null}"), {"LANDING": storage.uri}
    assert find_arrival(storage, spec, DAY, environ).missing == f"{storage.uri}/orders/{DAY}/*.json"
    _put(storage, f"orders/{DAY}/a.json", b"{}\n")
    assert find_arrival(storage, spec, DAY, environ).is_complete


def test_a_marker_may_be_anywhere(storage: Storage, tmp_path: Path) -> None:
    spec, environ = _spec(tmp_path, "{marker: '${LANDING}/done/{partition}'}"), {"LANDING": storage.uri}
    assert not find_arrival(storage, spec, DAY, environ).is_complete
    _put(storage, f"done/{DAY}")
    assert find_arrival(storage, spec, DAY, environ).is_complete


def test_where_to_look_has_to_be_known(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="variable LANDING"):
        find_arrival(storage, _spec(tmp_path), DAY, {})
    with pytest.raises(InvalidInputError, match="partition key"):
        find_arrival(storage, _spec(tmp_path), "today", {"LANDING": storage.uri})
