"""Promises of evidence: whatever a check found, PostgreSQL and JSON can hold it, and it is not long."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib.gates.evidence import as_json, as_measure, as_sample
from lakelib.model.text import is_storable


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (pd.NA, None),
        (pd.NaT, None),
        (True, True),
        (np.True_, True),
        (np.int64(7), 7),
        (2**53, 2**53),
        (2**53 + 1, "9007199254740993"),
        (-(2**70), str(-(2**70))),
        (1.5, 1.5),
        (2.0**53, 2.0**53),
        (1.1234123057887683e17, "1.1234123057887683e+17"),
        (np.float64(0.25), 0.25),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Decimal("1.50"), "1.50"),
        (Decimal("1E+3"), "1000"),
        (Decimal("NaN"), "NaN"),
        (date(1969, 1, 1), "1969-01-01"),
        (datetime(2026, 11, 18, 1, 2, 3, 45), "2026-11-18 01:02:03.000045"),
        (datetime(2026, 11, 18, 1, tzinfo=timezone(timedelta(hours=5))), "2026-11-17 20:00:00"),
        (pd.Timestamp("2026-11-18 01:02:03", tz=UTC), "2026-11-18 01:02:03"),
        (b"\x00\xff", "0x00ff"),
        ("a\0b\ud800", "a\\0b\\ud800"),
        ("x" * 301, "x" * 300 + "…"),
        ((1, None), [1, None]),
        ({"a": Decimal("0.1"), 2: b""}, {"a": "0.1", "2": "0x"}),
        (list(range(22)), [*range(20), "… 2 more"]),
        ([[[[[[1]]]]]], [[[["[[1]]"]]]]),
    ],
)
def test_a_value_is_shown_as_json_holds_it(value: Any, shown: Any) -> None:
    found = as_json(value)
    assert (found, type(found)) == (shown, type(shown))


def test_what_was_measured_of_decimals_is_a_number() -> None:
    assert as_measure(Decimal("1.50")) == 1.5
    assert as_measure({"quantiles": [0.5], "values": [Decimal("0.25")]}) == {"quantiles": [0.5], "values": [0.25]}


def test_a_sample_is_bounded() -> None:
    assert as_sample(range(100)) == tuple(range(20))


def test_a_nested_value_is_bounded_however_wide_and_deep_it_is() -> None:
    wide = ["x" * 400] * 30
    for _ in range(3):
        wide = [wide] * 30
    assert len(json.dumps(as_sample([wide]))) < 10_000


_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(codec=None)),
    st.binary(),
    st.decimals(),
    st.dates(),
    st.datetimes(timezones=st.none() | st.just(UTC)),
)
_VALUES = st.recursive(_LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner))


@given(_VALUES)
def test_any_value_is_strict_json_that_postgresql_keeps(value: Any) -> None:
    written = json.dumps(as_json(value), allow_nan=False, ensure_ascii=False)
    assert is_storable(written)
    assert "\\u0000" not in json.dumps(as_json(value))
