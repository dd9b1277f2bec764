"""What was written comes back, and anything else is refused."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import MALFORMED
from gnothi.typed import typed


@dataclass(frozen=True)
class Inner:
    name: str
    weight: float = 1.0


@dataclass(frozen=True)
class Outer:
    items: tuple[Inner, ...]
    pair: tuple[str, int]
    note: str | None = None
    done: bool = False


TEXTS = st.text(max_size=3)
INNER = st.builds(Inner, TEXTS, st.floats(allow_nan=False, allow_infinity=False))
RECORDS = st.builds(
    Outer,
    items=st.lists(INNER, max_size=2).map(tuple),
    pair=st.tuples(TEXTS, st.integers()),
    note=st.none() | TEXTS,
    done=st.booleans(),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda one: st.lists(one, max_size=3) | st.dictionaries(TEXTS | st.sampled_from(("name", "weight")), one, max_size=3),
    max_leaves=6,
)


@given(RECORDS)
def test_a_record_comes_back_from_json(record: Outer) -> None:
    assert typed(Outer, json.loads(json.dumps(asdict(record)))) == record


def test_missing_fields_keep_their_defaults_and_others_are_left_out() -> None:
    assert typed(Outer, {"items": [], "pair": ["a", 1], "more": 3}) == Outer((), ("a", 1))


@given(RECORDS, st.sampled_from(("items", "pair", "note", "done")), JSON)
def test_a_value_of_another_kind_is_refused_as_malformed(record: Outer, field: str, value: object) -> None:
    try:
        found = typed(Outer, asdict(record) | {field: value})
    except MALFORMED:
        return
    assert isinstance(found.note, str | None)
    assert isinstance(found.done, bool)
    assert isinstance(found.pair[0], str)
    assert all(isinstance(one.name, str) for one in found.items)
