from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnothi.calibration import learned
from gnothi.calibration.compare import read
from gnothi.calibration.learned import AFTER, BEFORE, CASCADE, learn, table
from gnothi.calibration.learned_records import Prices
from gnothi.calibration.replay import Known, Replay
from gnothi.errors import InvalidInput
from gnothi.runs.rows import jsonable
from tests.messages import refused

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Doubt tells what is wrong from memory; evidence that refuses is wrong, else right."""

    def writing(name: str, n: int = 200, seed: int = 0, signals: bool = True) -> Path:
        draw, lines = random.Random(seed), []
        for number in range(n):
            known, found = draw.random() < 0.5, draw.random() < 0.5
            line: dict[str, object] = {
                "question": f"Who wrote book {number}?",
                "answers": ["Austen"],
                "no_retrieval": "Austen" if known else "Burney",
                "one_retrieval": "Austen" if found else "I don't know",
            }
            if signals:
                line["direct"] = {"answer": "Austen", "doubt": draw.gauss() + 2 * (not known)}
            lines.append(json.dumps(line))
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    return writing


@pytest.fixture(autouse=True)
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One partition is enough to test by."""
    monkeypatch.setattr(learned, "REPEATS", 1)


def as_json(found: Any) -> dict[str, Any]:
    return dict(jsonable(found))


def test_it_closes_the_gap_that_its_features_can_close(write: Write) -> None:
    one, other = read(write("one", 120)), read(write("other", seed=1))
    (apart,) = learn([one], [other], Prices(search=0.05))
    (within,) = learn([one], [], Prices(search=0.05))
    assert within.learnt_on == ()
    for found, replay in ((apart, other), (within, one)):
        better = max(replay.never.mean(), replay.always.mean())
        oracle = np.maximum(replay.never, replay.always).mean()
        assert (found.ends.oracle, found.ends.helped) == pytest.approx((oracle, (replay.always > replay.never).mean()))
        assert found.ways[AFTER].accuracy == pytest.approx(oracle, abs=0.02)
        assert found.ways[CASCADE].accuracy == pytest.approx(oracle, abs=0.08)
        assert found.ways[AFTER].searches == 1
        assert better < found.ways[BEFORE].accuracy < oracle - 0.03  # it believes whatever it finds
        assert 0.4 < found.ways[CASCADE].searches < 0.95
        spent = found.ways[CASCADE].accuracy - 0.05 * found.ways[CASCADE].searches
        assert found.ways[CASCADE].worth == pytest.approx(spent, abs=1e-5)
        ends = max(replay.never.mean(), replay.always.mean() - 0.05)
        assert found.ways[CASCADE].gain == pytest.approx(spent - ends, abs=1e-5)
        assert found.best_signal is not None
        assert found.best_signal.signal == "doubt"
        interval = found.ways[CASCADE].gain_interval
        assert interval is not None
        assert interval[0] > 0
    assert apart.learnt_on == (one.source,)


def test_weights_say_what_it_looks_at_and_the_example_why_it_searched(write: Write) -> None:
    (found,) = learn([read(write("one"))], [read(write("other", seed=1))], Prices(search=0.05))
    before, after = found.steps
    assert before.needed > 0.05 * 0.9
    assert (after.stage, after.needed) == ("reading", 0)
    assert before.weights[0].feature == "doubt"
    assert before.weights[0].stage == "draft"
    told = {weight.feature: weight for weight in after.weights}
    assert told["evidence refuses"].evidence < 0 < told["doubt"].evidence
    assert found.example is not None
    assert (found.example.takes, found.example.memory_right, found.example.evidence_right) == ("evidence", False, True)
    assert [step.stage for step in found.example.steps] == ["draft", "reading"]
    assert all(step.goes_on and step.helped - step.harmed > step.needed for step in found.example.steps)
    pulls = [abs(reason.pull) for reason in found.example.steps[-1].reasons]
    assert pulls == sorted(pulls, reverse=True)


def test_no_outcome_of_what_is_judged_has_a_part(write: Write) -> None:
    learnt, judged = read(write("one")), read(write("other", seed=1))
    _same_but_for_outcomes(learnt, judged)


def test_no_label_of_the_recorded_test_files_is_used(shared_data: Path) -> None:
    learnt, judged = (read(shared_data / "recorded" / f"2wikimultihopqa.{split}.jsonl") for split in ("dev", "test"))
    _same_but_for_outcomes(learnt, judged)


def _same_but_for_outcomes(learnt: Replay, judged: Replay) -> None:
    """With all outcomes flipped, the same is learnt, the same searched for, and right is what was wrong."""
    flipped = replace(
        judged,
        never=1 - judged.never,
        always=1 - judged.always,
        signals=tuple(replace(signal, wrong=~signal.wrong) for signal in judged.signals),
    )
    assert (table(judged).values == table(flipped).values).all() or np.isnan(table(judged).values).any()
    (one,), (other,) = (learn([learnt], [replay], Prices(search=0.05)) for replay in (judged, flipped))
    assert as_json(one)["steps"] == as_json(other)["steps"]
    for way, found in one.ways.items():
        assert other.ways[way].searches == found.searches
        assert other.ways[way].accuracy == pytest.approx(1 - found.accuracy)
    assert one.example is not None
    assert other.example is not None
    assert (one.example.question, one.example.steps) == (other.example.question, other.example.steps)


def test_the_tokens_of_each_way(write: Write) -> None:
    """The draft tells nothing; evidence is always right."""
    draw = np.random.default_rng(0)
    tokens = {"draft": 10.0, "search": 0.0, "reading": 50.0}
    known = tuple(Known(f"of {stage}", stage, draw.normal(size=120)) for stage in tokens)
    base = read(write("one", 120))
    one = replace(base, always=np.ones(base.n), signals=(), known=known, tokens=tokens)
    (found,) = learn([one], [one], Prices(search=0.1, tokens=0.1))
    assert [(step.stage, step.needed > 0) for step in found.steps] == [("draft", True), ("search", True), ("reading", False)]
    assert {way: told.tokens for way, told in found.ways.items()} == {
        BEFORE: pytest.approx(10 + 50 * found.ways[BEFORE].searches),
        AFTER: 60,
        CASCADE: pytest.approx(10 + 50 * found.ways[CASCADE].searches),
    }


def test_within_a_file_a_question_is_judged_by_what_others_taught(write: Write) -> None:
    """Outcomes drawn anew for every question: whatever is learnt of them is worth nothing, and none looks as if it were."""
    replay, random = read(write("one", n=300)), np.random.default_rng(0)
    never, always = ((random.random(300) < 0.5).astype(float) for _ in range(2))
    noise = tuple(replace(signal, values=random.normal(size=300)) for signal in replay.signals)
    (found,) = learn([replace(replay, never=never, always=always, signals=noise, texts=())], [])
    for one in found.ways.values():
        assert one.gain < 0.04


def test_only_features_that_all_files_have_are_learnt(write: Write) -> None:
    plain, measured = read(write("plain", 40, signals=False)), read(write("measured", 40, seed=1))
    (found,) = learn([plain], [measured])
    assert "doubt" not in {weight.feature for weight in found.steps[-1].weights}
    assert found.best_signal is not None
    pooled = learn([plain, measured], [plain, measured])
    assert [one.questions_learnt for one in pooled] == [80, 80]
    assert [one.dataset for one in learn([plain, measured], [])] == ["plain", "measured"]


def test_what_was_not_measured_counts_as_least_certain(write: Write) -> None:
    one, other = read(write("one")), read(write("other", seed=1))
    (signal,) = other.signals
    blind = replace(other, signals=(replace(signal, values=np.full(other.n, np.inf)),))
    (found,) = learn([one], [blind], Prices(search=0.05))
    assert found.ways[CASCADE].searches == 1


def test_a_wrong_answer_that_costs_much_is_not_given(write: Write) -> None:
    one, other = read(write("one")), read(write("other", seed=1))
    (found,) = learn([one], [other], Prices(wrong=4.0))
    after = found.ways[AFTER]
    neither = ((other.never < 1) & (other.always < 1)).mean()
    assert neither - 0.03 < after.not_known < neither + 0.15
    assert after.accuracy / (1 - after.not_known) > 0.9
    assert learn([one], [other])[0].ways[AFTER].not_known == 0


@pytest.mark.parametrize(
    "change",
    [{}, {"texts": (), "signals": ()}],
)
def test_too_little_to_learn_from_is_refused(write: Write, change: Mapping[str, Any]) -> None:
    replay = read(write("few", n=30 if change else 12))
    with refused(InvalidInput):
        learn([replace(replay, **change)], [])
