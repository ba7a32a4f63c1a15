"""What is true or false is given as such: text and numbers that look like it are refused, and nothing is done."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelib import InvalidInputError, Lake, Table

SCHEMA = pa.schema([("id", pa.int64())])
ROWS = pa.table({"id": [1]}, SCHEMA)
WRITES = ("append", "upsert", "delete_keys", "stage_append", "stage_upsert", "stage_delete_keys")

FLAGS: dict[str, Callable[[Lake, Table, Any], Any]] = {
    "if_not_exists": lambda lake, table, flag: lake.create_table(table.name, SCHEMA, if_not_exists=flag),
    "dry_run": lambda lake, _, flag: lake.vacuum(dry_run=flag),
    "orphans": lambda lake, _, flag: lake.vacuum(True, orphans=flag),
    "full": lambda _, table, flag: table.compact(full=flag),
    "with_reset": lambda _, table, flag: table.done_partitions(with_reset=flag),
    "dry_run of expire": lambda _, table, flag: table.expire(dry_run=flag),
}
for _name in ("merge_schema", "explicit_cast"):
    for _write in WRITES:
        FLAGS[f"{_name} of {_write}"] = lambda _, table, flag, _write=_write, _name=_name: getattr(table, _write)(
            ROWS, **{_name: flag}
        )
    FLAGS |= {
        f"{_name} of overwrite": lambda _, table, flag, _name=_name: table.overwrite(ROWS, **{_name: flag}),
        f"{_name} of stage_overwrite": lambda _, table, flag, _name=_name: table.stage_overwrite(ROWS, **{_name: flag}),
        f"{_name} of delete": lambda _, table, flag, _name=_name: table.delete("id = 7", **{_name: flag}),
        f"{_name} of stage_delete": lambda _, table, flag, _name=_name: table.stage_delete("id = 7", **{_name: flag}),
        f"{_name} of evolve": lambda _, table, flag, _name=_name: table.evolve(add="x int", **{_name: flag}),
    }


@pytest.fixture(scope="module")
def table(lake: Lake) -> Table:
    lake.create_namespace("flags")
    return lake.create_table("flags.t", SCHEMA, primary_key=["id"])


@pytest.mark.parametrize("flag", ["no", "false", "True", "", 0, 1, None, [], np.int64(1), np.array([True])], ids=repr)
@pytest.mark.parametrize("name", list(FLAGS))
def test_a_flag_that_is_no_bool_is_refused(lake: Lake, table: Table, name: str, flag: Any) -> None:
    head = table.head
    with pytest.raises(InvalidInputError, match=rf"^{name.split()[0]} is .*Give True or False") as refused:
        FLAGS[name](lake, table, flag)
    assert refused.value.kind == "invalid_option"
    assert (table.head, table.schema) == (head, SCHEMA.set(0, pa.field("id", pa.int64(), nullable=False)))


@pytest.mark.parametrize("flag", [np.True_, np.False_], ids=repr)
def test_numpys_own_bools_are_taken(table: Table, flag: Any) -> None:
    rows = pa.table({"id": pa.array(["1"])})
    if flag:
        assert table.append(rows, explicit_cast=flag).summary
        return
    with pytest.raises(InvalidInputError, match="explicit_cast=True"):
        table.append(rows, explicit_cast=flag)
