"""Questions of which it is known whether the model could answer them from memory, to judge a new question by its neighbours
(SKR: Wang et al. 2023, arXiv 2310.05002, section 3).

A folder made by ``gnothi train knowledge-reference``: ``questions.jsonl`` holds one line per training question, with
``question`` and ``known``; ``knowledge.json`` names the encoder it is searched with.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from gnothi.errors import InvalidInput
from gnothi.filtering.encoders import LEXICAL, Dense, Lexical, SentenceEncoder, Similarity
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Foreseen
from gnothi.types import Capabilities, Passage, Prompt

FORMAT = 1
HEADER, QUESTIONS = "knowledge.json", "questions.jsonl"
COMMAND = "gnothi train knowledge-reference"
_DIGITS = 5
"""Similarities are compared to so many digits, so that rounding does not decide; equal ones keep the stored order."""


@dataclass(frozen=True, slots=True)
class Experience:
    """A training question; ``known``: the model answered it rightly from memory."""

    question: str
    known: bool


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Of the nearest questions, how many were known and unknown; ``known_share``: the known ones' share of all stored."""

    known: int
    unknown: int
    known_share: float


@runtime_checkable
class KnowledgeSource(Protocol):
    """Training questions by whether the model knew the answer."""

    async def neighbours(self, question: str, n: int) -> Neighbours:
        """Of the ``n`` stored questions most like this one (all, where fewer are stored)."""
        ...


@dataclass(frozen=True, slots=True)
class LessKnown(Foreseen):
    """By how much unknown questions are commoner among the ``n`` nearest ones than among all stored, in [-1, 1].

    Of the question alone: the same whatever passages or beginnings of an answer stand in the prompt."""

    source: KnowledgeSource
    n: int = 10

    name: ClassVar[str] = "neighbours"
    needs: ClassVar[Capabilities] = Capabilities()
    default_threshold: ClassVar[float | None] = 0.0

    async def foresee(self, model: LanguageModel, prompt: Prompt) -> float:  # noqa: ARG002
        near = await self.source.neighbours(prompt.question, self.n)
        return round(near.unknown / (near.known + near.unknown) + near.known_share - 1.0, 9)  # 0.7 + 0.3 - 1 is 0


class KnowledgeReference:
    """A ``KnowledgeSource`` of at least one question. Without ``similarity``, questions are compared by their words."""

    def __init__(self, experiences: Sequence[Experience], similarity: Similarity | None = None, name: str = "") -> None:
        self.name = name
        self._known = [one.known for one in experiences]
        self._similarity = similarity or Lexical([(one.question, _NO_PASSAGE) for one in experiences])

    async def neighbours(self, question: str, n: int) -> Neighbours:
        similarities = np.round(await self._similarity.to_stored(question, _NO_PASSAGE), _DIGITS)
        nearest = [self._known[place] for place in np.argsort(-similarities, kind="stable")[:n].tolist()]
        return Neighbours(sum(nearest), len(nearest) - sum(nearest), sum(self._known) / len(self._known))

    async def aclose(self) -> None:
        await self._similarity.aclose()


_NO_PASSAGE = Passage("", "")


def write_knowledge(path: Path, experiences: Sequence[Experience], encoder: str = LEXICAL) -> None:
    """Makes the folder, or makes it anew."""
    path.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"question": one.question, "known": one.known}, ensure_ascii=False) for one in experiences]
    (path / QUESTIONS).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    (path / HEADER).write_text(json.dumps({"format": FORMAT, "encoder": encoder}) + "\n", "utf-8")


def open_knowledge(path: str | Path) -> KnowledgeReference:
    """The questions of a folder, to be searched with its encoder.

    Raises InvalidInput where there are none, ModelUnavailable or MissingDependency where the encoder cannot be opened.
    """
    path = Path(path)
    encoder, experiences = _read(path)
    if encoder == LEXICAL:
        return KnowledgeReference(experiences, name=str(path))
    model = SentenceEncoder(encoder)
    vectors = model.encode([(one.question, _NO_PASSAGE) for one in experiences])
    return KnowledgeReference(experiences, Dense(model, vectors), str(path))


def _read(path: Path) -> tuple[str, list[Experience]]:
    try:
        header: Any = json.loads((path / HEADER).read_text("utf-8"))
        lines = [json.loads(line) for line in (path / QUESTIONS).read_text("utf-8").splitlines() if line.strip()]
        if header["format"] != FORMAT:
            raise ValueError(f"format {header['format']}, this version reads {FORMAT}")
        encoder, experiences = str(header["encoder"]), [Experience(str(one["question"]), bool(one["known"])) for one in lines]
    except OSError as error:
        raise InvalidInput(
            f"{path} holds no knowledge reference: cannot read {Path(str(error.filename)).name}. Make one with `{COMMAND}`."
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path}: got {type(error).__name__} ({error}), expected a folder made by `{COMMAND}`.") from error
    if not experiences:
        raise InvalidInput(f"{path}: got no questions, expected at least one. Make it again with `{COMMAND}`.")
    return encoder, experiences
