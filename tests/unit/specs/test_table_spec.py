"""A table's spec: what is accepted, and what is said of everything else."""

import textwrap
from datetime import date, timedelta
from pathlib import Path

import pytest

from lakelib.errors import InvalidInputError, NotFoundError
from lakelib.model.upkeep import TagEnd
from lakelib.specs.table_spec import TableSpec, load_spec, load_specs, parse_spec, partition_range, scan_specs

WHOLE = """\
table: shop.orders
description: One row an order.
columns: |
  order_id BIGINT, dt DATE, customer_id BIGINT, amount DECIMAL(10, 2), updated_at TIMESTAMP
primary_key: [order_id]
partition_by: [dt]
buckets: 4
sequence_by: [updated_at]
options: {target_file_bytes: 1000000}
source:
  format: json
  path: ${LANDING}/orders/{partition}/*.json
  options: {multiLine: true}
  columns: null
  arrival: {marker: _READY, timeout: 6h, poll: 10s}
  when_empty: skip
transform: orders.sql
reads: {customers: shop.customers}
write: {mode: upsert, merge_schema: false, explicit_cast: true, partitions: dynamic}
partition: {column: dt, every: day}
gate: gates/orders.yaml
schedule: {cron: "0 2 * * *", timezone: UTC, start: 2026-11-01, catchup: false}
publish:
  tag: "dt-{partition}"
  mark_done: [success_file, done_partition, {http_report: {url: "http://h/x", params: {a: 1}}}]
review: {timeout: 1d 12h}
maintenance: {compact: {full: true}, expire: {keep_last: 3, older_than: 2w}}
engine: auto
local: {most_source_bytes: 1000000, memory_bytes: 536870912}
spark: {master: "local[2]", connection: null, conf: {spark.driver.memory: 1g}, timeout: 2h}
retries: {count: 2, delay: 30s}
"""

SMALL = """\
table: shop.orders
columns: order_id BIGINT, dt DATE, at TIMESTAMP, month STRING
primary_key: [order_id]
partition_by: [dt]
partition: {column: dt, every: day}
source: {path: "/in/{partition}/*.json"}
"""

_HOURS = {"partition_by": "[at]", "partition": "{column: at, every: hour}"}
_MONTHS = {"partition_by": "[month]", "partition": "{column: month, every: month}"}
SUITE = "name: orders\nexpectations: [{type: expect_column_values_to_not_be_null, kwargs: {column: dt}}]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gates").mkdir()
    (tmp_path / "gates" / "orders.yaml").write_text(SUITE)
    (tmp_path / "orders.sql").write_text("SELECT * FROM source")
    return tmp_path


def _changed(text: str, **fields: str | None) -> str:
    """The spec with other fields, one a line; None leaves one out."""
    lines = [line for line in text.splitlines() if line.partition(":")[0] not in fields]
    return "\n".join([*lines, *(f"{name}: {value}" for name, value in fields.items() if value is not None)]) + "\n"


def _problems(folder: Path, text: str) -> list[str]:
    """What is said of the spec, without the file's name and the remedy."""
    with pytest.raises(InvalidInputError) as raised:
        parse_spec(text, folder / "orders.yaml")
    assert raised.value.kind == "invalid_spec"
    prefix = f"{folder / 'orders.yaml'}, "
    lines = raised.value.message.splitlines()
    assert all(line.startswith(prefix) for line in lines)
    return [line.removeprefix(prefix) for line in lines]


def test_every_field_is_read(folder: Path) -> None:
    spec = parse_spec(WHOLE, folder / "orders.yaml")
    assert (spec.namespace, spec.name, spec.buckets) == ("shop", "orders", 4)
    assert [column.name for column in spec.named_columns] == ["order_id", "dt", "customer_id", "amount", "updated_at"]
    assert spec.source is not None
    assert spec.source.arrival.timeout == timedelta(hours=6)
    assert spec.source.options == {"multiLine": "true"}
    assert spec.options == {"target_file_bytes": "1000000"}
    assert spec.transform_path == folder / "orders.sql"
    assert spec.gate_path == folder / "gates" / "orders.yaml"
    assert spec.schedule is not None
    assert (spec.schedule.cron, spec.schedule.start) == ("0 2 * * *", date(2026, 11, 1))
    assert [each.kind for each in spec.publish.mark_done] == ["success_file", "done_partition", "http_report"]
    assert spec.publish.mark_done[2].http_report is not None
    assert spec.publish.mark_done[2].http_report.params == {"a": 1}
    assert spec.review.timeout == timedelta(days=1, hours=12)
    assert spec.maintenance.expire is not None
    assert spec.maintenance.expire.older_than == timedelta(days=14)
    assert spec.spark.conf == {"spark.driver.memory": "1g"}
    assert (spec.engine, spec.local.most_source_bytes) == ("auto", 1_000_000)
    assert (spec.retries.count, spec.retries.delay) == (2, timedelta(seconds=30))


def test_a_hive_metastore_may_be_told(folder: Path) -> None:
    told = parse_spec(_changed(SMALL, publish="{report: hive}"), folder / "orders.yaml").publish.report
    assert told is not None
    assert (told.metastore, told.database, told.idle) == ("${LAKE_VAR_HIVE_METASTORE}", None, None)
    rests = "{report: {hive: {metastore: 'thrift://a:1,thrift://b:2', database: web, idle: 1h}}}"
    later = parse_spec(_changed(SMALL, publish=rests), folder / "orders.yaml").publish.report
    assert later is not None
    assert (later.metastore, later.database, later.idle) == ("thrift://a:1,thrift://b:2", "web", timedelta(hours=1))


@pytest.mark.parametrize("remote", ["sc://host", "sc://host:15002", "sc://host:443/;use_ssl=true", "${LAKE_VAR_SPARK}"])
def test_a_server_may_do_the_work(folder: Path, remote: str) -> None:
    conf = "{spark.sql.shuffle.partitions: 4}"
    spec = parse_spec(_changed(SMALL, spark=f"{{remote: '{remote}', conf: {conf}}}"), folder / "orders.yaml")
    assert (spec.spark.remote, spec.spark.conf) == (remote, {"spark.sql.shuffle.partitions": "4"})


def test_a_few_fields_are_enough(folder: Path) -> None:
    spec = parse_spec(SMALL, folder / "orders.yaml")
    assert (spec.write.mode, spec.write.partitions, spec.gate, spec.schedule) == ("upsert", "key", None, None)
    assert spec.source is not None
    assert (spec.source.format, spec.source.when_empty, spec.source.arrival.marker) == ("parquet", "fail", "_READY")
    assert spec.suite() is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"table": None}, "line 1, field table: found nothing; expected a value: The table as namespace.name, such as"),
        (
            {"table": "orders"},
            "line 6, field table: found 'orders'; expected a table as namespace.name, such as \"shop.",
        ),
        ({"bukets": "4"}, "line 7, field bukets: found a field that is not known; expected buckets."),
        (
            {"x": "red"},
            "line 7, field x: found a field that is not known; expected one of table, description,",
        ),
        ({"write": "{mod: upsert}"}, "line 7, field write.mod: found a field that is not known; expected mode."),
        ({"columns": "a INT, b"}, "line 6, field columns: found 'a INT, b'; expected columns as a name and a type"),
        ({"columns": "'dt DATE, order_id INT, DT INT'"}, "expected each column once; 'DT' comes twice."),
        ({"columns": "'order_id INT, dt DECIMAL(3'"}, "expected brackets that match; one is never closed."),
        ({"columns": "'order_id INT, dt DATE,'"}, "with nothing between two commas, or after the last."),
        ({"primary_key": "[id]"}, "field primary_key.0: found 'id'; expected one of columns: order_id, dt, at, month."),
        ({"primary_key": "[order_id, ORDER_ID]"}, "field primary_key.1: found 'ORDER_ID' again; expected each column"),
        ({"primary_key": "order_id"}, "field primary_key: found 'order_id'; expected a list."),
        ({"sequence_by": "[seq]"}, "field sequence_by.0: found 'seq'; expected one of columns:"),
        ({"buckets": "3"}, "field buckets: found 3; expected a power of two up to 65536, dynamic or postpone."),
        ({"buckets": "true"}, "field buckets: found true; expected a power of two"),
        ({"primary_key": "[]"}, "found upsert without a primary_key; expected a primary_key, append or overwrite."),
        ({"primary_key": "[]", "buckets": "4", "write": "{mode: append}"}, "found 4; expected a primary_key for it"),
        (
            {"options": "{compresion: zstd}"},
            "field options.compresion: found an option that is not known; expected one",
        ),
        ({"options": "{compression: zip}"}, "field options.compression: found 'zip'; expected one of zstd, snappy"),
        (
            {"options": "{required_gate: g}"},
            "field options.required_gate: found 'g'; expected a gate: the option follo",
        ),
        (
            {"source": None},
            "field source: found nothing; expected a source, or a transform that reads tables of the la",
        ),
        ({"source": "{format: json}"}, "field source.path: found nothing; expected a value: Files, a folder"),
        ({"source": "{path: '/x/${a b}'}"}, "expected ${NAME} with a name of letters, digits and _; not ${a b}."),
        (
            {"engine": "flink"},
            "field engine: found 'flink'; expected spark, local or auto.",
        ),
        (
            {"local": "{memory_bytes: 1000}"},
            "field local.memory_bytes: found 1000; expected at least 67108864.",
        ),
        (
            {"spark": "{conf: {spark.x: '${env:HOME}'}}"},
            "field spark.conf: found a mapping; expected values without ${env:…}.",
        ),
        ({"source": "{path: /x, arrival: {marker: x/}}"}, "field source.arrival.marker: found 'x/'; expected the name"),
        (
            {"source": "{path: /x, arrival: {timeout: 3}}"},
            "field source.arrival.timeout: found 3; expected a length of",
        ),
        ({"source": "{path: /x, arrival: {poll: 0s}}"}, "field source.arrival.poll: found '0s'; expected a length of"),
        ({"source": "{path: /x, when_empty: ignore}"}, "found 'ignore'; expected fail, skip or publish."),
        ({"source": "{path: /x, columns: id}"}, "field source.columns: found 'id'; expected columns as a name"),
        ({"source": "{path: /x, options: {a: [1]}}"}, "field source.options.a: found a list; expected text."),
        ({"transform": "no.sql"}, "field transform: found 'no.sql'; expected a file; there is none at /"),
        ({"gate": "no.yaml"}, "field gate: found 'no.yaml'; expected a file; there is none at /"),
        ({"reads": "{c: shop.customers}"}, "field reads: found views without a transform; expected a transform"),
        (
            {"write": "{when_empty: skip}"},
            "field write.when_empty: found skip without a transform; expected a",
        ),
        ({"reads": "{c: customers}"}, "field reads.c: found 'customers'; expected a table as namespace.name"),
        ({"reads": "{source: shop.c}"}, "field reads.source: found 'source'; expected another name than 'source'"),
        ({"reads": "{a b: shop.c}"}, "field reads.a b: found 'a b'; expected a name of letters, digits and _."),
        ({"write": "{mode: replace}"}, "field write.mode: found 'replace'; expected append, upsert or overwrite."),
        ({"write": "{merge_schema: 'yes'}"}, "field write.merge_schema: found 'yes'; expected true or false."),
        ({"partition": "{column: dt}"}, "field partition.every: found none for column 'dt'; expected day, hour or mon"),
        ({"partition": "{every: day}"}, "field partition.column: found nothing; expected a column that holds the day"),
        ({"partition": "{column: at, every: day}"}, "found 'at'; expected one of the columns of partition_by: dt."),
        ({"partition": "{column: dt, every: week}"}, "field partition.every: found 'week'; expected day, hour, month"),
        ({"partition": "{column: dt, every: hour}"}, "found hour for column 'dt' of type DATE; expected for a hour a"),
        (
            {"partition": "{every: day}", "write": "{mode: overwrite}"},
            "where each day brings a full copy, write: {mode: overwrite, partitions: all}.",
        ),
        ({"partition": "{strict: true}"}, "field partition.strict: found true; expected a partition.column for it."),
        (
            {"partition": "{column: dt, every: day, strict: true}", "write": "{mode: overwrite, partitions: all}"},
            "field partition.strict: found true, and an overwrite of partitions: all; expected write.partitions: key.",
        ),
        ({"schedule": "{}"}, "field schedule: found neither of cron and after; expected one of them."),
        ({"schedule": "{cron: '@daily', after: [a.b]}"}, "field schedule: found both of cron and after; expected one"),
        ({"schedule": "{cron: '0 25 * * *'}"}, "found '0 25 * * *'; expected hour as *, a number from 0 to 23"),
        ({"schedule": "{cron: '0 2 * *'}"}, "field schedule.cron: found '0 2 * *'; expected five fields (minute, hour"),
        ({"schedule": "{cron: '@daily', timezone: Mars}"}, "found 'Mars'; expected the name of a time zone, such as"),
        ({"schedule": "{cron: '@daily', start: soon}"}, "found 'soon'; expected a day such as 2026-11-01."),
        (
            {"schedule": "{cron: '@daily', start: 2026-11-01 03:00:00}"},
            "found 2026-11-01 03:00:00; expected a day such as 2026-11-01.",
        ),
        ({"schedule": "{cron: '@daily', catchup: true}"}, "field schedule.catchup: found true; expected a start, the"),
        ({"schedule": "{after: []}"}, "field schedule.after: found a list; expected a list with at least one item."),
        ({"schedule": "{after: [shop.orders]}"}, "field schedule.after.0: found 'shop.orders' itself; expected other"),
        ({"schedule": "{after: [a.b], timezone: UTC}"}, "field schedule.timezone: found 'UTC' beside after; expected"),
        ({"schedule": "{after: [a.b], catch_up_keys: true}"}, "field schedule.catch_up_keys: found true beside after;"),
        (
            {"schedule": "{cron: '0 2 * * 1-5'}"},
            "field schedule.cron: found '0 2 * * 1-5', which does not tick once for each day; expected one tick a day,"
            " such as '0 2 * * *', or catch_up_keys: true, with which a tick is about each day that ended",
        ),
        ({"schedule": "{cron: '0 2,14 * * *'}"}, "found '0 2,14 * * *', which does not tick once for each day"),
        ({"schedule": "{cron: '*/30 2 * * *'}"}, "found '*/30 2 * * *', which does not tick once for each day"),
        ({"schedule": "{cron: '@weekly'}"}, "found '@weekly', which does not tick once for each day"),
        (
            {**_MONTHS, "schedule": "{cron: '0 2 29 * *'}"},
            "found '0 2 29 * *', which does not tick once for each month",
        ),
        ({**_MONTHS, "schedule": "{cron: '0 2 1 * 1'}"}, "which does not tick once for each month"),
        ({**_MONTHS, "schedule": "{cron: '@daily'}"}, "found '@daily', which does not tick once for each month"),
        ({**_HOURS, "schedule": "{cron: '0 2 * * *'}"}, "found '0 2 * * *', which does not tick once for each hour"),
        (
            {**_HOURS, "schedule": "{cron: '@hourly', timezone: Europe/Berlin}"},
            "field schedule.timezone: found 'Europe/Berlin'; expected UTC where partition.every is hour: such keys are",
        ),
        (
            {"partition": None, "schedule": "{cron: '@daily', catch_up_keys: true}"},
            "field schedule.catch_up_keys: found true; expected a partition.every for it: the table has the one",
        ),
        (
            {"source": "{path: '/in/*.json'}"},
            "field source.path: found '/in/*.json'; expected {partition} in it, for a",
        ),
        (
            {"source": "{path: '${LANDING}/orders-{partition}.json'}"},
            "field source.arrival.marker: found '${LANDING}/_READY' for every day; expected {partition} in its",
        ),
        ({"source": "{path: '/in/*/{partition}/x.json'}"}, "field source.arrival.marker: found '/in/_READY' for every"),
        (
            {"source": "{path: '/in/{partition}/', arrival: {marker: /in/_READY}}"},
            "field source.arrival.marker: found '/in/_READY' for every day; expected {partition} in its path",
        ),
        (
            {"source": "{path: '/in/{day}/{partition}/*.json'}"},
            "source.path: found '/in/{day}/{partition}/*.json'; expected {partition}, or alternatives such as {a,b}, in"
            " braces; not {day}.",
        ),
        (
            {"source": "{path: '/in/{partition}/x', arrival: {marker: '/done/{partition}/{table}'}}"},
            "source.arrival.marker: found '/done/{partition}/{table}'; expected {partition}, or alternatives",
        ),
        ({"publish": "{tag: 'a-{day}'}"}, "found 'a-{day}'; expected {partition} or {snapshot} in braces; not {day}."),
        ({"publish": "{tag: 'a-{partition'}"}, "found 'a-{partition'; expected each brace to be closed, and opened."),
        (
            {"publish": "{tag: {name: 'a-{day}'}}"},
            "found 'a-{day}'; expected {partition} or {snapshot} in braces; not {day}.",
        ),
        (
            {"publish": "{tag: {name: 'v{snapshot}', keep: soon}}"},
            "publish.tag.keep: found 'soon'; expected a length of time such as",
        ),
        ({"publish": "{tag: {name: 'v{snapshot}', keep_last: 0}}"}, "found 0; expected at least 1."),
        (
            {"publish": "{tag: {name: 'v{snapshot}', keep: forever, keep_last: 3}}"},
            "publish.tag.keep_last: found 3 beside keep: forever; expected one of them.",
        ),
        (
            {"publish": "{tag: newest}"},
            "found 'newest'; expected {partition} or {snapshot} in it, for tags are never m",
        ),
        ({"publish": "{mark_done: [done]}"}, "field publish.mark_done.0: found 'done'; expected success_file, done_pa"),
        ({"publish": "{mark_done: [{http_report: {}}]}"}, "field publish.mark_done.0.http_report.url: found nothing;"),
        ({"publish": "{mark_done: [{http_report: {url: x}}]}"}, "found 'x'; expected an address that begins with http"),
        (
            {"publish": "{report: [hive]}"},
            "field publish.report: found a list; expected hive, or hive: {metastore: thri",
        ),
        (
            {"publish": "{report: {hive: {metastore: host}}}"},
            "found 'host'; expected an address that begins with thrift",
        ),
        ({"publish": "{mark_done: [success_file, success_file]}"}, "found success_file again; expected each way once."),
        (
            {"partition_by": "[dt, month]", "publish": "{mark_done: [success_file]}"},
            "field publish.mark_done: found a table that is partitioned by month as well; expected partitions that",
        ),
        ({"review": "{timeout: soon}"}, "field review.timeout: found 'soon'; expected a length of time such as"),
        ({"maintenance": "{expire: {keep_last: 0}}"}, "field maintenance.expire.keep_last: found 0; expected at least"),
        ({"maintenance": "{compact: true}"}, "field maintenance.compact: found true; expected a mapping."),
        ({"spark": "{master: yarn, connection: spark}"}, "found both master and connection; expected one of them."),
        ({"spark": "{master: yarn, remote: 'sc://h'}"}, "found both master and remote; expected one of them."),
        ({"spark": "{remote: 'spark://h'}"}, "found 'spark://h'; expected an address that begins with sc://, such as"),
        ({"spark": "{remote: 'sc://h/;token=x'}"}, "expected an address without a token: the environment has it, as"),
        (
            {"spark": "{remote: 'sc://h', conf: {spark.sql.a: 1, spark.driver.memory: 1g}}"},
            "found a setting of the server's own application; expected with remote just settings of a session",
        ),
        ({"retries": "{count: 101}"}, "field retries.count: found 101; expected at most 100."),
        ({"retries": "{count: many}"}, "field retries.count: found 'many'; expected a whole number."),
        ({"retries": "{delay: 1s 2s}"}, "field retries.delay: found '1s 2s'; expected a length of time such as"),
    ],
)
def test_each_wrong_field_is_named_with_its_line_and_what_is_expected(
    folder: Path, fields: dict[str, str | None], said: str
) -> None:
    problems = _problems(folder, _changed(SMALL, **fields))
    assert len(problems) == 1
    assert said in problems[0]


def test_all_that_is_wrong_is_said_at_once_in_the_order_of_lines(folder: Path) -> None:
    """A wrong type in one field does not hide that others do not fit together."""
    text = _changed(SMALL, retries="{count: x}", sequence_by="[nothing]", review="{timeout: x}", gate="no.yaml")
    problems = _problems(folder, text)
    assert [problem.partition(":")[0] for problem in problems] == [
        "line 7, field retries.count",
        "line 8, field sequence_by.0",
        "line 9, field review.timeout",
        "line 10, field gate",
    ]


def test_a_file_that_holds_no_fields_is_told_what_belongs_there(folder: Path) -> None:
    assert _problems(folder, "- a\n") == ["line 1, the file: found a list; expected fields such as table: shop.orders."]


def test_a_wrong_suite_is_said_where_it_is(folder: Path) -> None:
    (folder / "gates" / "orders.yaml").write_text("name: orders\n")
    with pytest.raises(InvalidInputError, match=r"gates/orders\.yaml, line 1: expectations must be a list"):
        parse_spec(_changed(SMALL, gate="gates/orders.yaml"), folder / "orders.yaml")


def test_a_file_that_is_not_there_is_not_found(folder: Path) -> None:
    with pytest.raises(NotFoundError):
        load_spec(folder / "nothing.yaml")


def test_one_broken_spec_leaves_the_others_readable(folder: Path) -> None:
    (folder / "a.yaml").write_text(_changed(SMALL, table="shop.a"))
    (folder / "b.yaml").write_text(_changed(SMALL, table="shop.b", buckets="3"))
    (folder / "c.yaml").write_text("table: [")
    (folder / "d.yml").write_text(_changed(SMALL, table="shop.d"))
    lines = ["a0: &a0 {k: v}", *(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 40))]
    (folder / "e.yaml").write_text("\n".join(lines))
    found = scan_specs(folder)
    assert [spec.table for spec in found.specs] == ["shop.a", "shop.d"]
    assert [file.name for file in found.errors] == ["b.yaml", "c.yaml", "e.yaml"]
    with pytest.raises(InvalidInputError, match=r"b\.yaml, line 7.*\n.*c\.yaml, line "):
        load_specs(folder)


@pytest.mark.parametrize("field", ["gate", "transform"])
@pytest.mark.parametrize("name", ["a\\0b", "x" * 300], ids=["NUL", "long"])
def test_a_file_that_cannot_be_is_not_there(folder: Path, field: str, name: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"field {field}: "):
        parse_spec(_changed(SMALL, **{field: f'"{name}"'}), folder / "orders.yaml")


def test_two_specs_of_one_table_are_both_wrong(folder: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (folder / name).write_text(SMALL)
    found = scan_specs(folder)
    assert found.specs == ()
    assert "found 'shop.orders'; expected a table of its own; b.yaml has it" in found.errors[folder / "a.yaml"].message


_PLAIN = "columns: id BIGINT, at TIMESTAMP\nprimary_key: [id]\n"


def _folder_of(folder: Path, **texts: str) -> dict[str, str]:
    """What is said of specs in one folder, by file, without the file's name."""
    home = folder / "tables"
    home.mkdir()
    for name, text in texts.items():
        (home / f"{name}.yaml").write_text(text)
    found = scan_specs(home)
    assert {spec.path for spec in found.specs} == {home / f"{name}.yaml" for name in texts} - found.errors.keys()
    return {path.stem: error.message.removeprefix(f"{path}, ") for path, error in found.errors.items()}


def _table(name: str, after: str | None = None, **more: str) -> str:
    follows = {"schedule": f"{{after: [{after}]}}"} if after else {}
    fields = {"source": "{path: '/in/{partition}/'}", **follows, **more}
    return f"table: {name}\n{_PLAIN}" + "".join(f"{field}: {value}\n" for field, value in fields.items())


def test_tables_whose_runs_would_start_each_other_for_ever_are_named(folder: Path) -> None:
    told = _folder_of(
        folder,
        a=_table("s.a", after="s.first, s.c"),
        b=_table("s.b", after="s.a"),
        c=_table("s.c", after="s.b"),
        first=_table("s.first"),
        last=_table("s.last", after="s.c"),
    )
    expected = "expected tables that do not come after this one; their runs would start each other for ever."
    assert told == {
        "a": f"line 5, field schedule.after.1: found s.a after s.c after s.b after s.a; {expected}",
        "b": f"line 5, field schedule.after.0: found s.b after s.a after s.c after s.b; {expected}",
        "c": f"line 5, field schedule.after.0: found s.c after s.b after s.a after s.c; {expected}",
    }


def test_a_table_after_one_that_nobody_knows_is_named(folder: Path) -> None:
    told = _folder_of(folder, a=_table("s.a"), b=_table("s.b", after="s.a, s.x"), c=_table("s.c", after="s.b"))
    assert told == {
        "b": "line 5, field schedule.after.1: found 's.x'; expected a table of which there is a spec: s.a, s.b, s.c."
    }


@pytest.mark.parametrize("broken", ["table: s.a\nbukets: 3\n", "table: [\n"])
def test_a_table_after_one_whose_spec_is_wrong_stays(folder: Path, broken: str) -> None:
    assert list(_folder_of(folder, a=broken, b=_table("s.b", after="s.a"))) == ["a"]


def test_two_tables_of_one_dag_id_are_both_named(folder: Path) -> None:
    told = _folder_of(folder, one=_table("s.a__b"), two=_table("s__a.b"), three=_table("s.b"))
    assert told == {
        "one": "line 1, field table: found 's.a__b'; expected a name whose DAG id is free; two.yaml has"
        " ingest__s__a__b, too, for s__a.b.",
        "two": "line 1, field table: found 's__a.b'; expected a name whose DAG id is free; one.yaml has"
        " ingest__s__a__b, too, for s.a__b.",
    }


def test_a_table_comes_after_those_that_say_which_of_its_partitions_is_meant(folder: Path) -> None:
    cut = {"partition_by": "[at]"}
    hour = {**cut, "partition": "{column: at, every: hour}"}
    day = {**cut, "partition": "{column: at, every: day}"}
    told = _folder_of(
        folder,
        whole=_table("s.whole", after="s.day, s.hour"),
        hour=_table("s.hour", **hour),
        day=_table("s.day", after="s.hour, s.other", **day),
        other=_table("s.other", **day),
        finer=_table("s.finer", after="s.day", **hour),
        of_whole=_table("s.of_whole", after="s.whole", **day),
    )
    assert told == {
        "finer": "line 5, field schedule.after.0: found 's.day', whose partition.every is day; expected tables whose"
        " runs say which hour they are about.",
        "of_whole": "line 5, field schedule.after.0: found 's.whole', whose partition.every is none; expected tables"
        " whose runs say which day they are about.",
    }


def test_the_hash_is_of_what_makes_the_rows(folder: Path) -> None:
    text = _changed(SMALL, transform="orders.sql")
    before = parse_spec(text, folder / "orders.yaml").hash
    assert parse_spec(f"# a comment\n{text}", folder / "orders.yaml").hash == before
    assert parse_spec(_changed(text, buckets="8"), folder / "orders.yaml").hash != before
    others = {"retries": "{count: 9}", "schedule": "{cron: '@daily'}", "gate": "gates/orders.yaml", "description": "x"}
    others |= {"engine": "auto", "local": "{memory_bytes: 536870912}"}
    assert parse_spec(_changed(text, **others), folder / "orders.yaml").hash == before
    assert parse_spec(_changed(text, options="{row_group_rows: 10}"), folder / "orders.yaml").hash == before
    waits = "{path: '/in/{partition}/*.json', arrival: {timeout: 1h}}"
    assert parse_spec(_changed(text, source=waits), folder / "orders.yaml").hash == before
    (folder / "orders.sql").write_text("SELECT 1")
    assert parse_spec(text, folder / "orders.yaml").hash != before


# What a spec says of a partition


def _spec(folder: Path, **fields: str) -> TableSpec:
    return parse_spec(_changed(SMALL, **fields), folder / "orders.yaml")


def test_paths_are_filled_in_when_they_are_used(folder: Path) -> None:
    spec = _spec(folder, source="{path: '${LANDING}/o/{partition}/{a,b}-*.json'}")
    environ = {"LANDING": "s3://in/{partition}"}
    assert spec.source_path("2026-11-18", environ) == "s3://in/{partition}/o/2026-11-18/{a,b}-*.json"
    with pytest.raises(InvalidInputError, match=r"orders\.yaml, field source\.path: the environment variable LANDING"):
        spec.source_path("2026-11-18", {"LANDING": ""})


@pytest.mark.parametrize(
    ("name", "listed", "is_allowed"),
    [
        ("LANDING", "", True),
        ("LAKE_VAR_SOURCES", "", True),
        ("SOURCES", "REPORTS, SOURCES", True),
        ("SOURCES", "REPORTS", False),
        ("LANDING_KEY", "", False),
        ("AWS_SECRET_ACCESS_KEY", "", False),
        ("AIRFLOW__CORE__FERNET_KEY", "", False),
        ("LAKE_CATALOG", "", False),
        ("LAKE_SPEC_VARIABLES", "SOURCES", False),
    ],
)
def test_a_spec_uses_only_variables_that_are_meant_for_specs(
    folder: Path, name: str, listed: str, is_allowed: bool
) -> None:
    spec = _spec(
        folder, source=f"{{path: '${{{name}}}/{{partition}}/', arrival: {{marker: '/m/${{{name}}}/{{partition}}'}}}}"
    )
    environ = {name: "hidden", "LAKE_SPEC_VARIABLES": listed}

    for path in (spec.source_path, spec.marker_path):
        if is_allowed:
            assert "hidden" in str(path("2026-11-18", environ))
            continue
        with pytest.raises(
            InvalidInputError, match=f"may not use the environment variable {name} .*LAKE_SPEC"
        ) as caught:
            path("2026-11-18", environ)
        assert caught.value.kind == "variable_not_allowed"
        assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "marker"),
    [
        ("{path: '/in/{partition}/*.json'}", "/in/2026-11-18/_READY"),
        ("{path: '/in/{partition}/'}", "/in/2026-11-18/_READY"),
        ("{path: '/in/{partition}.json', arrival: {marker: '/in/{partition}.ok'}}", "/in/2026-11-18.ok"),
        ("{path: '/in/{partition}/*/x.json', arrival: {marker: DONE}}", "/in/2026-11-18/DONE"),
        ("{path: '${LAKE_VAR_E}/{partition}/{a,b}/x.json'}", "ok/2026-11-18/_READY"),
        ("{path: '/in/{partition}/', arrival: {marker: '/m/{partition}.${LAKE_VAR_E}'}}", "/m/2026-11-18.ok"),
        ("{path: '/in/x-{partition}/', arrival: {marker: null}}", None),
    ],
)
def test_a_marker_is_beside_the_files_or_where_its_path_says(folder: Path, source: str, marker: str | None) -> None:
    assert _spec(folder, source=source).marker_path("2026-11-18", {"LAKE_VAR_E": "ok"}) == marker


def test_a_key_of_another_step_is_refused_with_the_tables_name(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"shop\.orders: The partition key '2026-11' is not that of a day\."):
        _spec(folder).source_path("2026-11", {})


@pytest.mark.parametrize(
    ("column", "every", "key", "value"),
    [
        ("dt", "day", "2026-11-18", "2026-11-18"),
        ("dt", "month", "2026-11", "2026-11-01"),
        ("month", "month", "2026-11", "2026-11"),
        ("month", "hour", "2026-11-18T05", "2026-11-18T05"),
        ("at", "hour", "2026-11-18T05", "2026-11-18 05:00:00"),
    ],
)
def test_the_value_of_the_keys_column_follows_its_type(
    folder: Path, column: str, every: str, key: str, value: str
) -> None:
    spec = _spec(folder, partition_by=f"[{column}]", partition=f"{{column: {column}, every: {every}}}")
    assert spec.partition_value(key) == {column: value}


def test_a_table_that_is_not_cut_by_time_has_one_key(folder: Path) -> None:
    spec = _spec(folder, partition="{}", publish="{tag: 'v{snapshot}'}")
    assert spec.partition_value("all") == {}
    assert partition_range(spec, "all", "all") == ("all",)
    assert spec.tag_name("all", 7) == "v7"


def test_dated_full_copies_have_keys_and_no_column_for_them(folder: Path) -> None:
    spec = _spec(
        folder,
        partition_by="[]",
        partition="{every: day, column: null}",
        write="{mode: overwrite, partitions: all}",
        publish="{tag: {name: 'dt-{partition}', keep: 90d}}",
    )
    assert spec.is_dated_copy
    assert (spec.partition_value("2026-11-18"), spec.tag_name("2026-11-18", 7)) == ({}, "dt-2026-11-18")
    assert spec.source_path("2026-11-18", {}) == "/in/2026-11-18/*.json"
    with pytest.raises(InvalidInputError, match="'all' is not that of a day"):
        spec.partition_value("all")


@pytest.mark.parametrize(
    ("tag", "end"),
    [
        ("'v{snapshot}'", TagEnd()),
        ("{name: 'v{snapshot}'}", TagEnd()),
        ("{name: 'v{snapshot}', keep: forever}", TagEnd()),
        ("{name: 'v{snapshot}', keep: 90d}", TagEnd(keep=timedelta(days=90), family="runs")),
        (
            "{name: 'v{snapshot}', keep: 2w, keep_last: 30}",
            TagEnd(keep=timedelta(days=14), keep_last=30, family="runs"),
        ),
    ],
)
def test_the_tags_of_runs_may_have_an_end(folder: Path, tag: str, end: TagEnd) -> None:
    spec = _spec(folder, publish=f"{{tag: {tag}}}")
    assert (spec.tag_name("2026-11-18", 7), spec.tag_end) == ("v7", end)


def test_tags_that_pin_every_snapshot_for_ever_are_warned_about(folder: Path) -> None:
    [warning] = _spec(folder, publish="{tag: 'v{snapshot}'}").warnings
    assert "line 7, field publish.tag: found 'v{snapshot}' without an end" in warning
    assert "expected keep, such as 90d, or keep_last beside name, or keep: forever." in warning
    assert _spec(folder, publish="{tag: {name: 'v{snapshot}', keep: 90d}}").warnings == ()
    assert _spec(folder, publish="{tag: {name: 'v{snapshot}', keep: forever}}").warnings == ()
    assert _spec(folder, publish="{tag: 'v{snapshot}'}", maintenance="{expire: null}").warnings == ()


def test_a_range_of_keys_has_both_its_ends(folder: Path) -> None:
    assert partition_range(_spec(folder), "2026-11-29", "2026-12-01") == ("2026-11-29", "2026-11-30", "2026-12-01")
    with pytest.raises(InvalidInputError, match="ends with '2026-11-28', before its first, '2026-11-29'"):
        partition_range(_spec(folder), "2026-11-29", "2026-11-28")


def test_ddl_may_have_comments_quotes_and_nested_types(folder: Path) -> None:
    ddl = textwrap.indent(
        "`order_id` BIGINT NOT NULL, -- the id, of the shop\n"
        "dt DATE COMMENT 'day, of order', /* a, b */\n"
        "`odd ``name, x` STRUCT<a: INT, b: ARRAY<DECIMAL(10, 2)>>,\nat TIMESTAMP, month STRING",
        "  ",
    )
    spec = parse_spec(_changed(SMALL, columns=f"|\n{ddl}"), folder / "orders.yaml")
    assert [(column.name, column.type) for column in spec.named_columns] == [
        ("order_id", "bigint"),
        ("dt", "date"),
        ("odd `name, x", "struct<a: int, b: array<decimal(10, 2)>>"),
        ("at", "timestamp"),
        ("month", "string"),
    ]


# Changes

_FOLLOWS = {"reads": "{orders: {table: shop.all, changes: latest}}", "transform": "orders.sql", "source": None}
_FROM_CHANGES = {**_FOLLOWS, "write": "{mode: overwrite}", "partition": "{column: dt, every: day, from_changes: true}"}


def test_a_read_is_a_table_or_its_changes(folder: Path) -> None:
    reads = "{a: shop.a, b: {table: shop.b}, c: {table: shop.c, changes: net}}"
    spec = parse_spec(_changed(SMALL, **{**_FOLLOWS, "reads": reads}), folder / "orders.yaml")
    assert [(read.table, read.changes) for read in spec.reads.values()] == [
        ("shop.a", None),
        ("shop.b", None),
        ("shop.c", "net"),
    ]
    assert (spec.read_tables, spec.follows_changes) == (("shop.a", "shop.b", "shop.c"), True)


def test_how_a_table_is_named_that_is_read_as_a_whole_makes_no_other_rows(folder: Path) -> None:
    named, mapped, followed = (
        parse_spec(_changed(SMALL, **{**_FOLLOWS, "reads": reads}), folder / "orders.yaml").hash
        for reads in ("{a: shop.a}", "{a: {table: shop.a}}", "{a: {table: shop.a, changes: all}}")
    )
    assert named == mapped != followed


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"reads": "{orders: {table: shop.all, changes: newest}}"}, "reads.orders.changes: found 'newest'; expected"),
        ({"reads": "{orders: 7}"}, "reads.orders: found 7; expected a table as namespace.name, such as"),
        ({"reads": "{orders: {tabel: shop.all}}"}, "reads.orders.tabel: found a field that is not known"),
        ({"reads": "{orders: {table: shop.orders, changes: net}}"}, "reads.orders.changes: found net of the table"),
    ],
)
def test_a_read_that_is_none_is_said(folder: Path, fields: dict[str, str], said: str) -> None:
    assert any(said in each for each in _problems(folder, _changed(SMALL, **{**_FOLLOWS, **fields})))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"reads": "{orders: shop.all}"}, "partition.from_changes: found true; expected a table in reads"),
        ({"source": '{path: "/in/{partition}/*"}'}, "partition.from_changes: found true beside a source"),
        ({"write": "{mode: upsert}"}, "partition.from_changes: found true beside write.mode upsert; expected"),
        ({"write": "{mode: overwrite, partitions: dynamic}"}, "beside write.mode overwrite of partitions: dynamic"),
        ({"write": "{mode: overwrite, when_empty: skip}"}, "write.when_empty: found skip beside"),
        ({"partition": "{from_changes: true}"}, "partition.from_changes: found true for the one key all"),
    ],
)
def test_partitions_come_from_changes_where_they_can(folder: Path, fields: dict[str, str], said: str) -> None:
    assert any(said in each for each in _problems(folder, _changed(SMALL, **{**_FROM_CHANGES, **fields})))


def test_how_long_history_is_kept_makes_no_other_rows(folder: Path) -> None:
    def parsed(more: str = "") -> TableSpec:
        reads = f"{{orders: {{table: shop.all, changes: latest{more}}}}}"
        return parse_spec(_changed(SMALL, **{**_FOLLOWS, "reads": reads}), folder / "orders.yaml")

    kept = parsed(", keep_for: 14d")
    assert (kept.reads["orders"].keep_for, kept.hash) == (timedelta(days=14), parsed().hash)


@pytest.mark.parametrize(
    ("reads", "said"),
    [
        ("{a: {table: shop.a, keep_for: 7d}}", "reads.a.keep_for: found it beside a table that is read whole"),
        ("{a: {table: shop.a, changes: net, keep_for: soon}}", "reads.a.keep_for: found 'soon'"),
    ],
)
def test_history_is_kept_of_what_is_followed(folder: Path, reads: str, said: str) -> None:
    assert any(said in each for each in _problems(folder, _changed(SMALL, **{**_FOLLOWS, "reads": reads})))


def test_a_query_that_asks_for_one_partition_does_not_make_several(folder: Path) -> None:
    query = folder / "orders.sql"
    query.write_text("SELECT * FROM orders -- not :partition")
    assert parse_spec(_changed(SMALL, **_FROM_CHANGES), folder / "orders.yaml").partition.from_changes
    query.write_text("SELECT * FROM orders WHERE dt = DATE(:partition)")
    (said,) = _problems(folder, _changed(SMALL, **_FROM_CHANGES))
    assert "transform: found :partition in its query" in said


def test_an_overwrite_by_changes_alone_is_warned_about(folder: Path) -> None:
    spec = parse_spec(_changed(SMALL, **{**_FOLLOWS, "write": "{mode: overwrite}"}), folder / "orders.yaml")
    (warning,) = spec.warnings
    assert "what has not changed goes" in warning
