"""Questions of which it is known whether the model could answer them from memory, to judge a new question by its neighbours
(SKR: Wang et al. 2023, arXiv 2310.05002, section 3).

A folder made by ``gnothi train knowledge-reference``: ``questions.jsonl`` holds one line per training question, with
``question`` and ``known``; ``knowledge.json`` names the encoder it is searched with, and how many more questions it was made
of, which told nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from gnothi.errors import InvalidInput
from gnothi.files import check_format, made_by, regular
from gnothi.filtering.encoders import LEXICAL, Dense, Lexical, SentenceEncoder, Similarity
from gnothi.types import Passage

FORMAT = 2
FILE, QUESTIONS = "knowledge.json", "questions.jsonl"
COMMAND = "gnothi train knowledge-reference"
_DIGITS = 5
"""Similarities are compared to so many digits, so that rounding does not decide; equal ones keep the stored order."""


@dataclass(frozen=True, slots=True)
class Experience:
    """A training question; ``known``: the model did better from memory."""

    question: str
    known: bool


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Of the nearest questions, how many were known and unknown; ``stored``: of all stored ones, and how many are silent."""

    known: int
    unknown: int
    stored: tuple[int, int, int]

    @property
    def above_share(self) -> float:
        """By how much unknown questions are commoner here than among all, in [-1, 1]: above 0 retrieve (section 3)."""
        known, unknown, _ = self.stored
        return round(self.unknown / (self.known + self.unknown) - unknown / (known + unknown), 9)  # 0.7 + 0.3 - 1 is 0

    def short_of(self, n: int) -> float:
        """By how many votes of ``n`` the kind that is commoner among all stored falls short of winning, as a share: the
        authors' code. Where known ones are commoner, retrieve above 0; else trust, whose sign is turned. It wins by as many
        votes as it would lead with among ``n`` of all questions, those that told nothing included, and by one at least."""
        known, unknown, silent = self.stored
        lead = max(1, int(abs(known - unknown) * n / (known + unknown + silent)))
        if known > unknown:
            return (lead - (self.known - self.unknown)) / n
        return (self.unknown - self.known - lead + 1) / n


@runtime_checkable
class KnowledgeSource(Protocol):
    """Training questions by whether the model knew the answer."""

    async def neighbours(self, question: str, n: int) -> Neighbours:
        """Of the ``n`` stored questions most like this one (all, where fewer are stored)."""
        ...


class KnowledgeReference:
    """A ``KnowledgeSource`` of at least one question; ``silent`` more left open what the model knows. Without ``similarity``,
    questions are compared by their words."""

    def __init__(
        self, experiences: Sequence[Experience], similarity: Similarity | None = None, name: str = "", silent: int = 0
    ) -> None:
        self.name = name
        self._silent = silent
        self._known = [experience.known for experience in experiences]
        self._similarity = similarity or Lexical([(experience.question, _NO_PASSAGE) for experience in experiences])

    async def neighbours(self, question: str, n: int) -> Neighbours:
        similarities = np.round(await self._similarity.to_stored(question, _NO_PASSAGE), _DIGITS)
        nearest = [self._known[place] for place in np.argsort(-similarities, kind="stable")[:n].tolist()]
        known = sum(self._known)
        return Neighbours(sum(nearest), len(nearest) - sum(nearest), (known, len(self._known) - known, self._silent))

    async def aclose(self) -> None:
        await self._similarity.aclose()


_NO_PASSAGE = Passage("", "")


def write_knowledge(
    path: Path,
    experiences: Sequence[Experience],
    encoder: str = LEXICAL,
    silent: int = 0,
    model: Mapping[str, str] | None = None,
) -> None:
    """Makes the folder, or makes it anew. ``silent`` questions left open what the model knows; ``model`` (name and fingerprint)
    knew the others or not."""
    path.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"question": one.question, "known": one.known}, ensure_ascii=False) for one in experiences]
    (path / QUESTIONS).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    header = {"format": FORMAT, "encoder": encoder, "silent": silent} | ({"model": dict(model)} if model else {})
    (path / FILE).write_text(json.dumps(header) + "\n", "utf-8")


def open_knowledge(path: str | Path) -> KnowledgeReference:
    """The questions of a folder, to be searched with its encoder.

    Raises InvalidInput where there are none, ModelUnavailable or MissingDependency where the encoder cannot be opened.
    """
    path = Path(path)
    encoder, silent, experiences = _load(path)
    if encoder == LEXICAL:
        return KnowledgeReference(experiences, name=str(path), silent=silent)
    model = SentenceEncoder(encoder)
    vectors = model.encode([(one.question, _NO_PASSAGE) for one in experiences])
    return KnowledgeReference(experiences, Dense(model, vectors), str(path), silent)


def _load(path: Path) -> tuple[str, int, list[Experience]]:
    with made_by(COMMAND, path, "knowledge reference"):
        header: Any = json.loads(regular(path / FILE).read_text("utf-8"))
        lines = [json.loads(line) for line in regular(path / QUESTIONS).read_text("utf-8").splitlines() if line.strip()]
        check_format(header, FORMAT)
        encoder, silent = header["encoder"], int(header["silent"])
        if not isinstance(encoder, str):
            raise ValueError(f"the encoder {encoder!r:.40} is no text")
        experiences = [Experience(str(line["question"]), bool(line["known"])) for line in lines]
    if not experiences:
        raise InvalidInput(f"{path}: got no questions, expected at least one. Make it again with `{COMMAND}`.")
    return encoder, silent, experiences
