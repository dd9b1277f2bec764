"""How much retrieval a question takes: none, once, or step by step (Adaptive-RAG: Jeong et al. 2024, section 3.2).

A logistic regression over words and pairs of neighbouring words tells, trained by ``gnothi train complexity`` on questions of
which it is known what sufficed. A folder holds ``complexity.json``: the features with their weights, and how they were found.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from gnothi.errors import InvalidInput
from gnothi.files import check_format, made_by, regular
from gnothi.signals.wording import WordClassifier, fit_words

FORMAT = 1
FILE = "complexity.json"
COMMAND = "gnothi train complexity"
STRATEGIES = ("none", "once", "steps")
"""The paper's A, B and C."""


class Probabilities(NamedTuple):
    """Of each strategy being the simplest that suffices; they add up to 1."""

    none: float
    once: float
    steps: float

    @property
    def strategy(self) -> str:
        """The likeliest one, of equally likely ones the simplest."""
        return STRATEGIES[max(range(len(STRATEGIES)), key=lambda place: (self[place], -place))]

    @property
    def lead(self) -> float:
        """Of the likelier way of retrieving over none, in [-1, 1]: above 0 where the ``strategy`` retrieves."""
        return max(self.once, self.steps) - self.none


@runtime_checkable
class ComplexitySource(Protocol):
    """Tells how much retrieval a question takes."""

    async def complexity(self, question: str) -> Probabilities: ...


@dataclass(frozen=True, slots=True)
class Labelled:
    """A training question and the simplest strategy that led to the right answer, one of ``STRATEGIES``."""

    question: str
    strategy: str


@dataclass(frozen=True)
class ComplexityClassifier:
    """A ``ComplexitySource``; the classes of ``words`` are ``STRATEGIES``."""

    words: WordClassifier
    name: str = ""

    async def complexity(self, question: str) -> Probabilities:
        return self.predict([question])[0]

    def predict(self, questions: Sequence[str]) -> list[Probabilities]:
        return [Probabilities(*map(float, row)) for row in self.words(questions)]

    async def aclose(self) -> None:
        return None


def fit(labelled: Sequence[Labelled], strength: float = 1.0, at_least: int = 2) -> ComplexityClassifier:
    """As ``fit_words``. A strategy without questions gets probabilities near 0. Raises InvalidInput for fewer than two
    strategies."""
    counts = Counter(item.strategy for item in labelled)
    if len(counts) < 2 or not counts.keys() <= set(STRATEGIES):
        counted = ", ".join(f"{count} of {strategy!r}" for strategy, count in sorted(counts.items())) or "none"
        raise InvalidInput(f"got questions with these labels: {counted}; expected at least two of {', '.join(STRATEGIES)}.")
    classes = [STRATEGIES.index(item.strategy) for item in labelled]
    return ComplexityClassifier(fit_words([item.question for item in labelled], classes, len(STRATEGIES), strength, at_least))


def write_complexity(path: Path, classifier: ComplexityClassifier, origin: Mapping[str, Any]) -> None:
    """Makes the folder, or makes it anew; ``origin`` says what it was learnt from."""
    path.mkdir(parents=True, exist_ok=True)
    document = {"format": FORMAT, **origin, **classifier.words.as_dict()}
    (path / FILE).write_text(json.dumps(document, ensure_ascii=False, indent=0) + "\n", "utf-8")


def open_complexity(path: str | Path) -> ComplexityClassifier:
    """The classifier of a folder. Raises InvalidInput where there is none."""
    path = Path(path)
    with made_by(COMMAND, path, "complexity classifier"):
        document: Any = json.loads(regular(path / FILE).read_text("utf-8"))
        check_format(document, FORMAT)
        return ComplexityClassifier(WordClassifier.from_dict(document, len(STRATEGIES)), str(path))
