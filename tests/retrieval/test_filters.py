from __future__ import annotations

from contextlib import suppress
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import InvalidSetting
from gnothi.retrieval import terms
from gnothi.retrieval.filters import OPERATORS, Filter, as_filters, parse
from gnothi.types import Metadata
from tests.messages import refused

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("source=handbook", Filter("source", "=", ("handbook",))),
        (" date >= 2025-01 ", Filter("date", ">=", ("2025-01",))),
        ("lang!=de, fr", Filter("lang", "!=", ("de", "fr"))),
        ('title="Salt, plums",x', Filter("title", "=", ("Salt, plums", "x"))),
        ("a b=c=d", Filter("a b", "=", ("c=d",))),
        ("page==7", Filter("page", "=", ("7",))),
    ],
)
def test_a_filter_as_it_is_written(text: str, expected: Filter) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize("text", ["", "source", "=x", "source=", "a=,b", "year>ten", "year>=1,2", "date<2025-13", "x" * 20_000])
def test_what_is_no_filter_is_told(text: str) -> None:
    with refused(InvalidSetting):
        parse(text)


@pytest.mark.parametrize(
    "given",
    ["year>=2020", ("year", ">=", 2020), [("year", ">=", "2020")], [{"key": "year", "operator": ">=", "value": 2020}]],
)
def test_the_ways_to_say_it_in_python(given: Any) -> None:
    assert as_filters(given) == (Filter("year", ">=", ("2020",)),)


def test_values_of_python() -> None:
    assert as_filters([("a", "in", [True, 1.5]), ("b", "<", date(2025, 1, 2))]) == (
        Filter("a", "=", ("true", "1.5")),
        Filter("b", "<", ("2025-01-02",)),
    )
    assert as_filters(None) == ()
    for wrong in (7, [7], [("a", "=")], [("a", "=", None)], {"a": 1}):
        with pytest.raises(InvalidSetting):
            as_filters(wrong)


@pytest.mark.parametrize("form", ["notes/Zürich.txt", "notes/Zu\u0308rich.txt"])
@pytest.mark.parametrize("asked", ["source=notes/Zürich.txt", "source=notes/Zu\u0308r*"])
def test_letters_with_accents_are_the_same_however_they_are_written(form: str, asked: str) -> None:
    held = terms.terms(Metadata({"source": form}))
    assert parse(asked).passes(held)
    assert not parse(asked.replace("=", "!=")).passes(held)


@given(TEXT.filter(lambda one: one.strip() == one and not set(one) & set("=!<>\n\r")), st.lists(TEXT, min_size=1))
def test_what_is_written_is_read_again(key: str, values: list[str]) -> None:
    one = Filter(key, "=", tuple(" ".join(value.split()) or "x" for value in values))
    assert parse(str(one)) == one


@given(st.text())
def test_no_text_is_anything_but_a_filter_or_refused(text: str) -> None:
    with suppress(InvalidSetting):
        assert parse(text).operator in OPERATORS


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_codes_of_numbers_stand_in_their_order(one: float, other: float) -> None:
    assert (terms.number_code(one) < terms.number_code(other)) == (one < other)


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.floats() | st.booleans()))
def test_terms_are_letters_and_digits_and_every_value_is_found(known: dict[str, Any]) -> None:
    metadata = Metadata(known)
    held = terms.terms(metadata)
    assert all(one.isascii() and one.isalnum() for one in held)
    for key, value in metadata.items():
        if key.strip() and terms.as_text(value) and not terms.as_text(value).endswith("*"):
            assert Filter(key, "=", (terms.as_text(value),)).passes(held)
            assert not Filter(key, "!=", (terms.as_text(value),)).passes(held)
