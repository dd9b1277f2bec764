"""Feedback: what people said of answers, kept line by line, and what a threshold can be chosen from it.

A file of JSON Lines that only grows; the last line about an answer counts. What it can tell is limited. Only answers that the
gate trusted say whether memory was right, and these lie below the threshold of their day: so feedback can confirm a threshold
or lower it, never raise it. And it is about answers that somebody chose to judge.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnothi.errors import MALFORMED, InvalidInput, InvalidSetting, malformation
from gnothi.models.identity import Identity
from gnothi.roles import GATED
from gnothi.runs.journal import read_lines
from gnothi.signals.stopping import KEY as STOPPING
from gnothi.stats.intervals import wilson_interval

if TYPE_CHECKING:
    from gnothi.calibration.source import Source

VERSION = 1
"""Of a line."""


@dataclass(frozen=True, slots=True)
class Judged:
    """An answer that somebody judged. ``signal``, ``score`` and ``threshold`` are its gate's (``calibration.live``), None where
    no gate took part; ``trusted``: it is from memory, since the gate did not fire; ``settings`` are those that scores depend
    on. ``question`` and ``answer`` are kept only where whoever runs the server wants that."""

    answer_id: str
    time: str
    setup: str
    method: str
    model: Identity
    right: bool
    trusted: bool
    signal: str | None = None
    score: float | None = None
    threshold: float | None = None
    settings: Mapping[str, Any] | None = None
    precision: str = ""
    question: str | None = None
    answer: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The line: what is None is left out, and what is infinite a text, for JSON has no number for it."""
        values = {key: value for key, value in asdict(self).items() if value is not None}
        return {"version": VERSION} | {
            key: str(value) if isinstance(value, float) and math.isinf(value) else value for key, value in values.items()
        }

    @property
    def gate(self) -> tuple[object, ...]:
        """What a threshold is of."""
        settings = sorted((key, str(value)) for key, value in (self.settings or {}).items())
        return self.method, self.signal, self.model, self.precision, tuple(settings)


def read(path: Path) -> list[Judged]:
    """The last judgement of each answer, oldest first. Raises InvalidInput for a file that is none."""
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}. Expected one that `gnothi serve` keeps feedback in.")
    by_answer: dict[str, Judged] = {}
    for place, data in read_lines(path):
        if data.get("version") != VERSION:
            raise InvalidInput(
                f"{place}: got version {data.get('version') or '(none)'}, expected {VERSION} in a line that `gnothi serve` "
                "wrote. Remove it."
            )
        try:
            judged = _judged(data)
        except MALFORMED as error:
            raise InvalidInput(
                f"{place}: {malformation(error):.80}, expected a line that `gnothi serve` wrote. Remove it."
            ) from None
        by_answer.pop(judged.answer_id, None)
        by_answer[judged.answer_id] = judged
    return list(by_answer.values())


def from_feedback(path: Path, method: str | None = None, signal: str | None = None, model: str | None = None) -> Source:
    """What people said of the answers that a gate trusted: of the ``method``, ``signal`` and ``model`` where they are given,
    else there has to be one of each. Answers given under other settings than the last one, or under a lower threshold, are
    left out: below a higher one, they are not what would be seen.

    Raises InvalidInput where too few count, InvalidSetting where there are several gates."""
    import numpy as np

    from gnothi.calibration.choose import FEWEST, Sample
    from gnothi.calibration.source import Source

    everything = read(path)
    gates = [one for one in everything if one.signal is not None]
    fitting = [
        one
        for one in gates
        if method in (None, one.method) and signal in (None, one.signal) and model in (None, one.model.name)
    ]
    for flag, names in (
        ("<--method>", {one.method for one in fitting}),
        ("<--signal>", {str(one.signal) for one in fitting}),
        ("<--model>", {one.model.name for one in fitting}),
    ):
        if len(names) > 1:
            raise InvalidSetting(f"{flag}: got none, expected one of those that {path} holds: {', '.join(sorted(names))}.")
    if not fitting:
        held = ", ".join(sorted({f"{one.method} ({one.signal}, model {one.model.name})" for one in gates}))
        expected = f"one gate: {held}. Name one with <--method>, <--signal> and <--model>."
        raise InvalidInput(
            f"{path}: got no answers that fit, expected those of {expected if gates else f'a gate, such as that of {GATED}.'}"
        )
    last = fitting[-1]
    if STOPPING in (last.settings or {}):
        raise InvalidInput(
            f"{path} holds answers of a gate that stopped drawing samples as soon as its own threshold was decided, which does "
            "not say what a lower one would have decided. Calibrate on questions whose answers you know, or serve with a "
            "calibration that was made without <--stop-early>."
        )
    same = [one for one in fitting if one.gate == last.gate]
    sample = [one for one in same if one.trusted and _is_let_through(one, last)]
    if len(sample) < FEWEST:
        raise InvalidInput(
            f"cannot calibrate: of {len(everything)} judged answers in {path}, got {len(sample)} from memory, under the gate "
            f"as it is now; expected at least {FEWEST}, better a few hundred. {_of_searched(same)}Go on collecting, or "
            "calibrate on questions whose answers you know: gnothi calibrate QUESTIONS."
        )
    return Source(
        sample=Sample(np.array([one.score for one in sample]), np.array([float(one.right) for one in sample]), None),
        method=last.method,
        signal=str(last.signal),
        answers_of=last.method,
        dataset=str(path),
        metric="feedback",
        model=last.model.name,
        identity=last.model,
        settings=last.settings or {},
        precision=last.precision,
        warnings=_warnings(same, sample, len(everything)),
        judged=True,
    )


def check_choice(target_error: float | None, price: float | None) -> None:
    """Raises InvalidSetting where feedback cannot tell what a threshold is to be chosen by."""
    if target_error is None or price is not None:
        raise InvalidSetting(
            "<--feedback> needs <--target-error R>, and no <--search-cost>: nobody knows what a judged answer would have been "
            "with, or without, a search, so what a search is worth cannot be told. Calibrate on questions for that."
        )


def _is_let_through(judged: Judged, last: Judged) -> bool:
    """Whether it is among the answers that the gate of ``last`` would let through, all of which its own gate let through."""
    limit = float("-inf") if last.threshold is None else last.threshold
    own = float("-inf") if judged.threshold is None else judged.threshold
    return judged.score is not None and judged.score <= limit <= own


def _warnings(same: Sequence[Judged], sample: Sequence[Judged], total: int) -> list[str]:
    return [
        f"of {total} judged answers, {len(sample)} count: those from memory under the gate as it is now. "
        f"{_of_searched(same)}So the threshold can stay or go down. For a higher one, calibrate on questions whose answers you "
        "know.",
        "these are answers that somebody chose to judge. The guarantee is about answers like them: if wrong ones are reported "
        "more readily than right ones, it is stricter than it need be; if less readily, it does not hold.",
    ]


def _of_searched(same: Sequence[Judged]) -> str:
    """How answers after a search did, which says nothing of memory's."""
    searched = [judged.right for judged in same if not judged.trusted]
    if not searched:
        return ""
    low, high = wilson_interval(len(searched) - sum(searched), len(searched))
    return (
        f"{len(searched)} came after a search ({low:.0%} to {high:.0%} of such are wrong), which says nothing of what memory "
        "would have said. "
    )


def _judged(data: Mapping[str, Any]) -> Judged:
    gate = data.get("signal") is not None
    if type(data["right"]) is not bool or type(data["trusted"]) is not bool:
        raise ValueError("right and trusted have to be true or false")
    threshold = data.get("threshold")
    return Judged(
        answer_id=str(data["answer_id"]),
        time=str(data["time"]),
        setup=str(data["setup"]),
        method=str(data["method"]),
        model=Identity(str(data["model"]["name"]), str(data["model"]["fingerprint"])),
        right=data["right"],
        trusted=data["trusted"],
        signal=str(data["signal"]) if gate else None,
        score=float(data["score"]) if gate else None,
        threshold=None if threshold is None else float(threshold),
        settings=dict(data["settings"]) if gate else None,
        precision=str(data.get("precision", "")),
        question=data.get("question"),
        answer=data.get("answer"),
    )
