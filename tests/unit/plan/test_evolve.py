"""A schema changes only in ways that old files can follow."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column, TableSchema
from lakelib.plan.declare import declare_schema
from lakelib.plan.evolve import SchemaChange, describe_change, evolve_schema, under_id

BEFORE = TableSchema(
    id=4,
    columns=declare_schema(
        "id BIGINT NOT NULL, dt DATE, seq INT, v INT, s STRUCT<a: INT>, d DECIMAL(10,2), r INT NOT NULL COMMENT 'r'"
    ),
)
NEXT_ID = 20


def evolved(**changes: Any) -> TableSchema:
    return evolve(BEFORE, **changes)


def evolve(schema: TableSchema, **changes: Any) -> TableSchema:
    return evolve_schema(
        schema,
        NEXT_ID,
        SchemaChange(**changes),
        key_ids=frozenset((1,)),
        fixed_ids=frozenset((1, 2)),
        kept_ids=frozenset((1, 2, 3)),
    )


def column(name: str, after: TableSchema) -> Column:
    found = after.find(name)
    assert found is not None
    return found


def test_added_columns_are_nullable_come_last_and_have_new_ids() -> None:
    after = evolved(add=[("a", "LONG"), pa.field("b", pa.date64()), "c ARRAY<INT>, e STRING", ("f", pa.float32())])
    assert after.id == 5
    assert after.columns == (
        *BEFORE.columns,
        Column(id=20, name="a", type="bigint"),
        Column(id=21, name="b", type="date"),
        Column(id=22, name="c", type="array<int>"),
        Column(id=23, name="e", type="string"),
        Column(id=24, name="f", type="float"),
    )


def test_a_name_that_was_dropped_comes_back_as_a_new_column() -> None:
    after = evolved(drop=["V"], add=[("v", "int")])
    assert column("v", after).id == NEXT_ID
    assert after.by_id(4) is None


def test_a_renamed_column_keeps_its_id() -> None:
    after = evolved(rename={"V": "w"})
    assert column("w", after) == Column(id=4, name="w", type="int")
    assert after.find("v") is None


def test_names_can_be_swapped_and_change_their_case() -> None:
    after = evolved(rename={"v": "s", "s": "v", "d": "D"})
    assert [(c.id, c.name) for c in after.columns[3:6]] == [(4, "s"), (5, "v"), (6, "D")]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("v", "bigint"),
        ("seq", "LONG"),
        ("d", "decimal(12, 2)"),
        ("d", "decimal(12,4)"),
        ("d", "decimal(38,10)"),
        ("s", "struct<a:bigint,b:string>"),
    ],
)
def test_columns_widen(name: str, kind: str) -> None:
    after = column(name, evolved(widen={name: kind}))
    assert after.id == column(name, BEFORE).id
    assert after.type == declare_schema(f"x {kind}")[0].type


def test_a_column_is_renamed_and_widened_at_once() -> None:
    assert column("w", evolved(rename={"v": "w"}, widen={"v": "bigint"})).type == "bigint"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "No change"),
        ({"add": ["v STRING"]}, "'v' and 'v'"),
        ({"add": [("V", "string")]}, "'v' and 'V'"),
        ({"add": ["x INT NOT NULL"]}, "'x' cannot be added as NOT NULL"),
        ({"add": [pa.field("x", pa.int8(), nullable=False)]}, "'x' cannot be added as NOT NULL"),
        ({"add": [("x", "foo")]}, "Column 'x': 'foo'"),
        ({"add": [("x", pa.uint8())]}, "Column 'x': Type uint8"),
        ({"add": [("_op", "int")]}, "'_op' is reserved"),
        ({"add": [42]}, "42 is not a column to add"),
        ({"drop": ["nope"]}, "'nope', to drop, does not exist"),
        ({"drop": ["ID"]}, "'id' cannot be dropped"),
        ({"drop": ["seq"]}, "'seq' cannot be dropped"),
        ({"drop": ["v"], "rename": {"v": "w"}}, "'v' cannot be dropped and changed at once"),
        ({"rename": {"nope": "x"}}, "'nope', to rename, does not exist"),
        ({"rename": {"v": "DT"}}, "'dt' and 'DT'"),
        ({"rename": {"v": "_commit"}}, "'_commit' is reserved"),
        ({"rename": {"v": ""}}, "no name"),
        ({"widen": {"nope": "int"}}, "'nope', to widen, does not exist"),
        ({"widen": {"v": "string"}}, "'v' cannot be widened from int to string"),
        ({"widen": {"v": "smallint"}}, "'v' cannot be widened from int to smallint"),
        ({"widen": {"v": "double"}}, "'v' cannot be widened from int to double"),
        ({"widen": {"d": "decimal(10,3)"}}, "'d' cannot be widened"),
        ({"widen": {"d": "decimal(12,1)"}}, "'d' cannot be widened"),
        ({"nullable": ["nope"]}, "'nope', to take NOT NULL from, does not exist"),
        ({"nullable": "id"}, "'id' belongs to the primary key"),
        ({"nullable": ["r"], "drop": ["r"]}, "'r' cannot be dropped and changed at once"),
        ({"move": {"nope": "first"}}, "'nope', to move"),
        ({"move": {"v": "last"}}, "'v' is to be moved to 'last'"),
        ({"move": {"v": "after"}}, "'v' is to be moved to 'after'"),
        ({"move": {"v": "after v"}}, "'v', to move or to move another one after, is not there"),
        ({"move": {"v": "after s"}, "drop": ["s"]}, "'s', to move"),
        ({"move": ["v"]}, "move is ['v']"),
        ({"comment": {"v": "a\0"}}, "The comment on column 'v'"),
        ({"comment": {"v": "x" * 4001}}, "The comment on column 'v'"),
        ({"comment": {"v": 5}}, "comment is {'v': 5}"),
        ({"widen": {"s": "struct<b:int>"}}, "'s' cannot be widened"),
        ({"widen": {"id": "decimal(20,0)"}}, "'id' keeps its type bigint"),
        ({"widen": {"v": "foo"}}, "Column 'v': 'foo'"),
    ],
)
def test_a_change_that_old_files_cannot_follow_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        evolved(**changes)
    assert message in str(error.value)
    assert error.value.remedy


def test_all_columns_cannot_be_dropped() -> None:
    free = TableSchema(id=1, columns=declare_schema("a INT"))
    with pytest.raises(InvalidInputError, match="All columns"):
        evolve_schema(
            free, 2, SchemaChange(drop=["a"]), key_ids=frozenset(), fixed_ids=frozenset(), kept_ids=frozenset()
        )


def test_not_null_is_taken_back_and_the_rest_of_the_column_stays() -> None:
    assert column("r", evolved(nullable=["R"])) == replace(column("r", BEFORE), nullable=True)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"move": {"d": "first"}}, "d id dt seq v s r"),
        ({"move": {"id": "AFTER r"}}, "dt seq v s d r id"),
        ({"move": {"d": "after dt", "s": "after d"}}, "id dt d s seq v r"),
        ({"move": {"v": "after id"}, "rename": {"v": "w", "id": "key"}}, "key w dt seq s d r"),
        ({"move": {"new": "first", "v": "after new"}, "add": ["new INT"]}, "new v id dt seq s d r"),
        ({"move": {"V": "after dt"}, "drop": ["v"], "add": ["v STRING"]}, "id dt v seq s d r"),
        ({"move": {"id": "first"}}, "id dt seq v s d r"),
    ],
)
def test_columns_move_and_keep_their_ids(changes: dict[str, Any], names: str) -> None:
    after = evolved(**changes)
    assert " ".join(after.names) == names
    assert {each.id for each in after.columns} - {NEXT_ID} == {each.id for each in BEFORE.columns} - (
        {4} if "drop" in changes else set()
    )


def test_a_column_called_first_is_what_another_may_be_after() -> None:
    after = evolved(add=["first INT, `so far` INT"], move={"id": "after first", "v": "after so far"})
    assert " ".join(after.names[-4:]) == "first id so far v"


def test_comments_are_said_kept_and_taken_away() -> None:
    assert column("v", evolved(comment={"v": "in EUR"})).comment == "in EUR"
    assert column("w", evolved(rename={"r": "w"})).comment == "r"
    assert column("r", evolved(comment={"r": ""})).comment == ""
    assert column("n", evolved(add=["n INT COMMENT 'new'"])).comment == "new"


def test_a_change_is_said_in_words() -> None:
    after = evolved(
        drop=["v"], add=["n INT"], rename={"s": "t"}, widen={"d": "decimal(12,4)"}, nullable=["r"], comment={"r": ""}
    )
    told = "drops v, renames s to t, widens d to decimal(12,4), lets r be NULL, comments on r, adds n"
    assert describe_change(BEFORE, after) == told
    assert describe_change(BEFORE, evolved(move={"r": "first"})) == "moves columns"
    assert describe_change(BEFORE, BEFORE) == ""


def test_a_decimal_of_another_scale_notes_since_when() -> None:
    scaled = under_id(BEFORE, evolved(widen={"d": "decimal(12,4)"}), 9)
    assert (scaled.id, column("d", scaled).scale_since) == (9, 9)
    longer = under_id(scaled, replace(scaled, columns=_with_type(scaled, "d", "decimal(14,4)")), 11)
    assert column("d", longer).scale_since == 9
    assert all(each.scale_since == 0 for each in longer.columns if each.name != "d")


def in_files(schema: TableSchema) -> dict[str, str]:
    return {column.name: column.in_file.name for column in schema.columns if column.stored_as}


def test_files_call_a_column_what_they_have_called_it_first_if_they_are_to() -> None:
    renamed = under_id(BEFORE, evolved(rename={"s": "t"}), 2, [BEFORE])
    again = under_id(renamed, evolve(renamed, rename={"t": "u", "v": "s"}), 3, [BEFORE, renamed])
    back = under_id(again, evolve(again, rename={"u": "s", "s": "v"}), 4, [BEFORE, renamed, again])

    assert [in_files(each) for each in (renamed, again, back)] == [{"t": "s"}, {"u": "s", "s": "v"}, {}]
    assert in_files(under_id(BEFORE, evolved(rename={"s": "t"}), 2)) == {}
    assert in_files(under_id(renamed, evolve(renamed, rename={"t": "u"}), 3)) == {}


def test_in_files_a_name_never_means_another_column_again() -> None:
    dropped = under_id(BEFORE, evolved(drop=["s"]), 2, [BEFORE])
    again = under_id(dropped, evolve(dropped, add=["S INT"]), 3, [BEFORE, dropped])
    assert in_files(again) == {"S": f"S-{again.columns[-1].id}"}
    assert in_files(under_id(dropped, evolve(dropped, add=["S INT"]), 3)) == {}

    renamed = under_id(BEFORE, evolved(rename={"s": "t"}), 2, [BEFORE])
    taken = under_id(renamed, evolve(renamed, rename={"v": "s"}), 3)  # the log has ended meanwhile
    assert in_files(taken) == {"t": "s", "s": f"s-{column('s', taken).id}"}


def _with_type(schema: TableSchema, name: str, kind: str) -> tuple[Column, ...]:
    return tuple(replace(each, type=kind) if each.name == name else each for each in schema.columns)
