from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnothi.calibration.from_file import is_recorded, read_recorded
from gnothi.errors import InvalidInput, UnknownName
from tests.messages import refused


def line(no: str = "Rome", one: str = "Paris", **more: Any) -> dict[str, Any]:
    return {
        "id": "1",
        "question": "What is the capital?",
        "answers": ["Paris"],
        "no_retrieval": no,
        "one_retrieval": one,
        **more,
    }


def written(folder: Path, *lines: dict[str, Any]) -> Path:
    path = folder / "some.test.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    return path


def test_outcomes_and_signals(tmp_path: Path) -> None:
    first = line("It is Paris.", multi_retrieval="paris", multi_retrieval_steps=3)
    second = line(multi_retrieval="Rome", multi_retrieval_steps=4)
    first["direct"] = {"answer": "Rome", "perplexity": 1.5, "energy_score": 20}
    second["direct"] = {"answer": "Paris", "perplexity": 3.0, "energy_score": 18.5}
    found = read_recorded(written(tmp_path, first, second))
    assert (found.n, found.dataset, found.names) == (2, "some.test", ("no_retrieval", "one_retrieval"))
    assert (found.never.tolist(), found.always.tolist()) == ([1, 0], [1, 1])
    assert found.others["multi_retrieval"].tolist() == [1, 0]
    assert found.searches == {"multi_retrieval": 3.5}
    perplexity, energy = found.signals
    assert (perplexity.name, perplexity.values.tolist(), perplexity.sign) == ("perplexity", [1.5, 3.0], 1)
    assert (energy.values.tolist(), energy.sign, energy.recorded(-19.0)) == ([-20, -18.5], -1, 19.0)
    assert (perplexity.wrong.tolist(), perplexity.truth) == ([True, False], "direct.answer")
    assert perplexity.recorded(-np.inf) is None


def test_other_answers_can_stand_for_never_and_always(tmp_path: Path) -> None:
    path = written(tmp_path, line(multi_retrieval="Paris"), line(multi_retrieval="Lyon"))
    found = read_recorded(path, always="multi_retrieval", never="one_retrieval")
    assert (found.never.tolist(), found.always.tolist()) == ([1, 1], [1, 0])
    assert list(found.others) == ["no_retrieval"]
    assert found.signals == ()


def test_a_file_may_name_its_answers_as_it_likes(tmp_path: Path) -> None:
    path = written(tmp_path, {"question": "?", "answers": ["Paris"], "closed": "Rome", "open": "Paris"})
    found = read_recorded(path, never="closed", always="open")
    assert (found.names, found.never.tolist(), found.always.tolist()) == (("closed", "open"), [0], [1])
    with refused(InvalidInput):
        read_recorded(path)


def test_a_signal_that_rises_with_certainty_can_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, line(direct={"sureness": 0.25}), line(direct={"sureness": 0.75}))
    (found,) = read_recorded(path, surer=["sureness"]).signals
    assert (found.values.tolist(), found.truth) == ([-0.25, -0.75], "no_retrieval")
    with refused(UnknownName):
        read_recorded(path, surer=["sure"])


def test_what_was_not_measured_counts_as_least_certain(tmp_path: Path) -> None:
    path = written(
        tmp_path, line(), *(line(direct={"gram": score}) for score in (float("nan"), None, float("inf"), -float("inf"), -3))
    )
    for signal in ((), ("gram",)):
        (found,) = read_recorded(path, surer=signal).signals
        assert found.values.tolist() == [*[np.inf] * 5, -3 * found.sign]
        assert found.known.tolist() == [False, *[True] * 5]


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [{"question": "?", "answers": ["a"]}],
        [line(), line() | {"no_retrieval": 3}],
        [line() | {"answers": []}],
        [{"question": "?", "answer": "a"}],
        [line(direct=[1])],
        [line(direct={"gram": 10**400})],
        [line(direct={"gram": 1}), line(direct={"gram": "1"})],
        [line(direct={"gram": 1}), line(direct={"gram": True})],
        [line(multi_retrieval="a", multi_retrieval_steps=10**400)],
    ],
)
def test_files_that_hold_something_else(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    with refused(InvalidInput):
        read_recorded(written(tmp_path, *lines))


def test_metrics_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, line("the city of Paris"), line("paris"))
    assert read_recorded(path, "em").never.tolist() == [0, 1]
    with refused(UnknownName):
        read_recorded(path, "bleu")


def test_recorded_outcomes_are_recognised(tmp_path: Path) -> None:
    assert is_recorded(written(tmp_path, line()))
    assert not is_recorded(written(tmp_path, {"question": "?", "answer": "a"}))
    for text in ("", '{\n"example": []}', "question,answer\n"):
        (tmp_path / "other").write_text(text)
        assert not is_recorded(tmp_path / "other")


def only_recorded_outcomes_are_recognised(data: Path) -> None:
    for name in ("selfaware.json", "truthfulqa.csv", "popqa.json", "nq_open.dev.jsonl", "hotpotqa.jsonl"):
        assert not is_recorded(data / name), name
    assert is_recorded(data / "recorded" / "nq.dev.jsonl")


def test_data_sets_in_their_official_forms_are_none(made_data: Path) -> None:
    only_recorded_outcomes_are_recognised(made_data)


def test_official_data_sets_are_none(shared_data: Path) -> None:
    only_recorded_outcomes_are_recognised(shared_data)
