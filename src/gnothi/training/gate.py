"""A learnt gate for the method ``cascade``, of runs in which it went to the end beside a method that answers from memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gnothi.calibration.from_run import read_run
from gnothi.calibration.learned import gate_of, learn
from gnothi.calibration.learned_records import Learned, Prices
from gnothi.calibration.replay import Replay
from gnothi.errors import InvalidInput
from gnothi.filtering.learned import write_gate
from gnothi.methods.cascade import LearnedCascade
from gnothi.runs.rows import jsonable
from gnothi.session.data import refuse_test_run


def train(runs: Sequence[Path], out: Path, prices: Prices, metric: str = "em", never: str | None = None) -> list[Learned]:
    """Write the gate learnt of all ``runs`` together. What it comes to on other questions: of one run, each question judged by
    what the others taught; of several, each run by what the others taught.

    Raises InvalidInput where a run recorded nothing, InvalidSetting where its questions are the laboratory's for testing."""
    replays = [_recorded(run, metric, never) for run in runs]
    gate = gate_of(replays, prices)
    if len(replays) == 1:
        found = learn(replays, [], prices)
    else:
        found = [
            one for replay in replays for one in learn([other for other in replays if other is not replay], [replay], prices)
        ]
    origin = {
        "runs": [str(run) for run in runs],
        "questions": sum(replay.n for replay in replays),
        "metric": metric,
        "prices": jsonable(prices),
    }
    write_gate(out, gate, origin)
    return found


def _recorded(run: Path, metric: str, never: str | None) -> Replay:
    refuse_test_run(run)
    replay = read_run(run, metric, never, LearnedCascade.name)
    if not replay.known:
        raise InvalidInput(
            f"{run}: got answers by {LearnedCascade.name} with a gate, expected it without one, which records what is known at "
            f"each stage. Make a run with `gnothi eval TRAINING-QUESTIONS --method cot,{LearnedCascade.name} --out {run}`."
        )
    return replace(replay, signals=())  # the method measures none of them
