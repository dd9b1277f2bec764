from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.errors import InvalidInput
from gnothi.filtering.complexity import (
    FILE,
    STRATEGIES,
    ComplexitySource,
    Labelled,
    Probabilities,
    fit,
    open_complexity,
    write_complexity,
)
from tests.messages import refused

NAMES = ("Ada", "Bram", "Corda", "Doran", "Elm", "Fane")
LABELLED = [
    *(Labelled(f"Who is {name}?", "none") for name in NAMES),
    *(Labelled(f"Where was {name} born?", "once") for name in NAMES),
    *(Labelled(f"Where was the mother of {name} born?", "steps") for name in NAMES),
]


def test_it_tells_by_wording() -> None:
    told = fit(LABELLED).predict(["Who is Odile?", "Where was Odile born?", "Where was the mother of Odile born?"])
    assert [one.strategy for one in told] == list(STRATEGIES)
    assert all(sum(one) == pytest.approx(1) for one in told)


@settings(max_examples=settings().max_examples // 3)
@given(st.lists(st.tuples(st.text(max_size=12), st.sampled_from(STRATEGIES)), min_size=2, max_size=8), st.text(max_size=20))
def test_any_text_gets_probabilities(drawn: list[tuple[str, str]], asked: str) -> None:
    labelled = [Labelled(*one) for one in drawn]
    if len({one.strategy for one in labelled}) < 2:
        with pytest.raises(InvalidInput):
            fit(labelled)
        return
    (told,) = fit(labelled).predict([asked])
    assert sum(told) == pytest.approx(1)
    assert min(told) >= 0


def test_equally_likely_is_the_simplest() -> None:
    assert Probabilities(0.4, 0.4, 0.2).strategy == "none"
    assert Probabilities(0.2, 0.4, 0.4).strategy == "once"


async def test_written_and_read(tmp_path: Path) -> None:
    made = fit(LABELLED)
    write_complexity(tmp_path / "c", made, {"labels": {}})
    read = open_complexity(tmp_path / "c")
    assert isinstance(read, ComplexitySource)
    assert await read.complexity("Who is Mira?") == await made.complexity("Who is Mira?")


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2}', '{"format": 1, "features": {"a": [1]}, "constants": [0, 0, 0]}'])
def test_what_cannot_be_read(tmp_path: Path, text: str) -> None:
    with refused(InvalidInput):
        open_complexity(tmp_path)
    (tmp_path / FILE).write_text(text)
    with refused(InvalidInput):
        open_complexity(tmp_path)
