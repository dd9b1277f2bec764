"""Outcomes that gates can be replayed on without a model: per question the quality with and without retrieval, and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gnothi.filtering.traits import Texts
from gnothi.runs.stage_rates import Reached

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Scores:
    """A signal on the questions of a replay. ``values`` are higher where the model is less certain (``sign`` x what was
    recorded), infinite where nothing could be measured; ``wrong`` is what the signal ought to tell, where it is ``known``.

    Arrays have shape (n,). ``truth`` names whose answer it is that may be wrong. In a run, ``method`` is the one that measured,
    ``signal`` what it measured, and ``settings`` are those in which this differs from the method's own."""

    name: str
    values: Floats
    wrong: Mask
    known: Mask
    truth: str
    sign: int = 1
    method: str = ""
    signal: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """What a user may call it: its name, and that without the method, which it begins with where several measured it."""
        return self.name, self.name.removeprefix(f"{self.method}: ")

    def recorded(self, value: float) -> float | None:
        """A threshold in the units and direction of what was recorded; None for one that retrieves for all."""
        return None if value == -np.inf else self.sign * value


@dataclass(frozen=True, slots=True)
class Known:
    """What a method without a gate recorded of each question at a ``stage`` (``filtering.traits``), not a number where it could
    not be measured; shape (n,)."""

    name: str
    stage: str
    values: Floats


@dataclass(frozen=True, slots=True)
class Replay:
    """``never``, ``always`` and ``others`` (further ways to answer, by name) hold the quality of each question, shape (n,).

    ``names`` are those of never and always; ``searches`` says how often the others searched on average, where that is known;
    ``alarms`` are warnings about gates that took part; ``settings`` those of the run, by dotted key; ``questions`` the ids,
    where the record has some, ``texts`` what was asked and answered, where it holds that, ``kinds`` of which kind each question
    is, where there are several. ``known`` is what was recorded stage by stage, beside the answers of always, and ``tokens``
    what the stages took, on average. ``reached``: how far the answers of a run's methods came."""

    source: str
    dataset: str
    metric: str
    names: tuple[str, str]
    never: Floats
    always: Floats
    signals: tuple[Scores, ...]
    others: Mapping[str, Floats] = field(default_factory=dict)
    searches: Mapping[str, float] = field(default_factory=dict)
    alarms: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    questions: tuple[str, ...] = ()
    texts: tuple[Texts, ...] = ()
    kinds: tuple[str, ...] = ()
    known: tuple[Known, ...] = ()
    tokens: Mapping[str, float] = field(default_factory=dict)
    reached: Mapping[str, Reached] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return len(self.never)

    def only(self, chosen: Mask) -> Replay:
        """The questions ``chosen``, shape (n,)."""
        places = np.flatnonzero(chosen).tolist()
        return replace(
            self,
            never=self.never[chosen],
            always=self.always[chosen],
            signals=tuple(
                replace(one, values=one.values[chosen], wrong=one.wrong[chosen], known=one.known[chosen])
                for one in self.signals
            ),
            others={name: values[chosen] for name, values in self.others.items()},
            questions=tuple(self.questions[place] for place in places if self.questions),
            texts=tuple(self.texts[place] for place in places if self.texts),
            known=tuple(replace(one, values=one.values[chosen]) for one in self.known),
        )
