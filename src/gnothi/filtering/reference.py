"""The utility reference: passages known to have helped or harmed an answer, to show a judge as examples (KEQA, section 3.4).

A folder made by ``gnothi train utility-reference``: ``labels.jsonl`` holds one line per training question with its judged
passages, ``reference.json`` names the encoder it is searched with, ``vectors.npy`` holds that encoder's vector of each labelled
pair (none for the words of ``lexical``).
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gnothi.errors import MALFORMED, InvalidInput, InvalidSetting, malformation
from gnothi.files import regular
from gnothi.filtering.encoders import LEXICAL, Dense, Lexical, Pair, SentenceEncoder, Similarity
from gnothi.retrieval.dense.encoders import Vectors, stored_name
from gnothi.types import Demonstration, Passage

FORMAT = 1
HEADER, LABELS, VECTORS = "reference.json", "labels.jsonl", "vectors.npy"
COMMAND = "gnothi train utility-reference"
_SAME_ENCODER = 0.99
"""The cosine below which an encoder is not the one that made the stored vectors; other devices and dtypes stay above it."""
_DIGITS = 5
"""Similarities are compared to so many digits, so that rounding does not decide; equal ones keep the stored order."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A passage that raised (``helpful``) or lowered the quality of the answer to a training question."""

    question: str
    passage: Passage
    helpful: bool

    @property
    def pair(self) -> Pair:
        return self.question, self.passage

    @property
    def demonstration(self) -> Demonstration:
        return Demonstration(self.question, "Yes" if self.helpful else "No", (self.passage,))


class Reference:
    """A ``DemonstrationSource``. Without ``similarity``, pairs are compared by their words."""

    def __init__(self, labelled: Sequence[Labelled], similarity: Similarity | None = None, name: str = "") -> None:
        self.name = name
        self.labelled = tuple(labelled)
        self._similarity = similarity or Lexical([item.pair for item in labelled])

    async def nearest(self, question: str, passage: Passage, n: int, at_least: int) -> tuple[Demonstration, ...]:
        """The n most like the pair, the best last, of each label at least ``at_least`` (at most n // 2) if there are."""
        if not self.labelled:
            return ()
        similarities = np.round(await self._similarity.to_stored(question, passage), _DIGITS)
        return self._demonstrations(np.argsort(-similarities, kind="stable").tolist(), n, at_least)

    async def random(self, n: int, at_least: int, seed: int) -> tuple[Demonstration, ...]:
        """n by chance, of each label at least ``at_least`` (at most n // 2) if there are."""
        order = list(range(len(self.labelled)))
        random.Random(seed).shuffle(order)
        return self._demonstrations(order, n, at_least)

    async def aclose(self) -> None:
        await self._similarity.aclose()

    def _demonstrations(self, ranked: Sequence[int], n: int, at_least: int) -> tuple[Demonstration, ...]:
        places = choose(ranked, [item.helpful for item in self.labelled], n, at_least)
        return tuple(self.labelled[place].demonstration for place in reversed(places))


def choose(ranked: Sequence[int], helpful: Sequence[bool], n: int, at_least: int) -> list[int]:
    """At most n of ``ranked``, in that order: the first ``at_least`` of each label, then the first of any.

    ``ranked`` holds places in ``helpful``, best first. ``at_least`` counts as n // 2 where it is more; where a label has fewer,
    all of it is taken and the other one fills up.
    """
    share = min(at_least, n // 2)
    chosen = {place for label in (True, False) for place in [p for p in ranked if helpful[p] is label][:share]}
    rest = [place for place in ranked if place not in chosen]
    chosen |= set(rest[: max(n - len(chosen), 0)])
    return [place for place in ranked if place in chosen]


def open_reference(path: str | Path, encoder: str | None = None) -> Reference:
    """The reference in a folder, searched with the encoder it was made with.

    ``encoder``, where given, must be that one. Raises InvalidInput where there is no (finished) reference, InvalidSetting for
    another encoder or one that has changed, ModelUnavailable or MissingDependency where the encoder cannot be opened.
    """
    path = Path(path)
    header = read_header(path)
    if encoder is not None and stored_name(encoder) != header["encoder"]:
        raise InvalidSetting(_encode_anew(path, f"made with the encoder {header['encoder']!r}, got {encoder!r}", encoder))
    labelled = read_labelled(path / LABELS)
    if header["encoder"] == LEXICAL:
        return Reference(labelled, name=str(path))
    vectors = _vectors(path, len(labelled))
    model = SentenceEncoder(header["encoder"])
    if labelled and not _made_by(model, labelled[0].pair, vectors[0]):
        what = f"made with another model under the name {header['encoder']!r}: it gives other vectors than those stored"
        raise InvalidSetting(_encode_anew(path, what, header["encoder"]))
    return Reference(labelled, Dense(model, vectors), str(path))


def read_header(path: Path) -> dict[str, Any]:
    """What ``reference.json`` says. Raises InvalidInput where there is none, or one that this version cannot read."""
    file = path / HEADER
    try:
        header = json.loads(regular(file).read_text("utf-8"))
    except OSError:
        unfinished = (path / LABELS).exists()
        do = "The same command again completes it" if unfinished else f"Make one with `{COMMAND}`"
        state = "an unfinished" if unfinished else "no"
        raise InvalidInput(f"{path} holds {state} utility reference: there is no {HEADER} to read. {do}.") from None
    except ValueError as error:
        raise InvalidInput(
            f"{file}: got {error}, expected JSON as written by `{COMMAND}`. Make the reference again."
        ) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT or not isinstance(header.get("encoder"), str):
        raise InvalidInput(
            f"{file}: got {json.dumps(header)[:60]}, expected format {FORMAT} and an encoder. Make it again with `{COMMAND}`."
        )
    return header


def read_labelled(file: Path) -> list[Labelled]:
    """The pairs that helped or harmed, in the file's order. Raises InvalidInput, with the line's number."""
    labelled = []
    try:
        with regular(file).open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    labelled += labelled_in(json.loads(line))
                except MALFORMED as error:
                    raise InvalidInput(
                        f"{file}, line {number}: got {line[:60]!r} ({malformation(error)}), expected a question "
                        f"with judged passages as written by `{COMMAND}`. Remove the line, or make the reference again."
                    ) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"cannot read {file}: {error}. Make the reference again with `{COMMAND}`.") from error
    except OSError as error:
        raise InvalidInput(f"cannot read {file}: {error.strerror}. Make the reference again with `{COMMAND}`.") from error
    return labelled


def labelled_in(line: Mapping[str, Any]) -> list[Labelled]:
    """Of one question's line, the passages that changed the answer's quality; those without effect are left out."""
    return [
        Labelled(
            line["question"], Passage(str(passage["id"]), str(passage["text"]), str(passage["title"])), passage["label"] > 0
        )
        for passage in line.get("judged", ())
        if passage["label"]
    ]


def _vectors(path: Path, rows: int) -> Vectors:
    try:
        vectors: Vectors = np.load(regular(path / VECTORS), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InvalidInput(f"cannot read {path / VECTORS}: {error}. Give the command that made the reference again.") from error
    if vectors.ndim != 2 or len(vectors) != rows:
        raise InvalidInput(
            f"{path / VECTORS}: got shape {vectors.shape}, expected {rows} rows, one per labelled pair of {LABELS}. "
            "Give the command that made the reference again."
        )
    return vectors


def _made_by(encoder: SentenceEncoder, pair: Pair, stored: Vectors) -> bool:
    now = encoder.encode([pair])[0]
    if now.shape != stored.shape:
        return False
    return float(now @ stored) >= _SAME_ENCODER * float(np.linalg.norm(now) * np.linalg.norm(stored))


def _encode_anew(path: Path, what: str, encoder: str) -> str:
    return (
        f"the utility reference {path} was {what}. Give the command that made it again with <--encoder {encoder}>: the labels "
        "stay, only the vectors are made anew."
    )
