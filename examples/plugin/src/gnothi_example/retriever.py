"""A folder of notes: one passage a text file, ranked by the words it shares with the query."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from gnothi.errors import IndexUnavailable
from gnothi.retrieval.results import check_k, ranked
from gnothi.types import Passage, ScoredPassage


class Notes:
    """All ``*.txt`` of a folder, for ``--index notes:FOLDER``. A first line that begins with "# " is the title."""

    def __init__(self, folder: str) -> None:
        """Raises IndexUnavailable for a folder that is not there or holds no notes."""
        self.name = f"notes:{folder}"
        self._passages = [_passage(path) for path in _files(folder)]
        self._words = [_words(f"{passage.title} {passage.text}") for passage in self._passages]

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        check_k(k)
        asked = _words(query)
        shared = ((passage, len(asked & words)) for passage, words in zip(self._passages, self._words, strict=True))
        return ranked((ScoredPassage(passage, float(count)) for passage, count in shared if count), k)

    async def aclose(self) -> None:
        """Nothing to release."""

    @staticmethod
    def fingerprint(folder: str) -> str:
        """Changes with any note: a run over the old ones is not resumed with the new ones."""
        found = hashlib.blake2b(digest_size=16)
        for path in _files(folder):
            found.update(f"{path.name}\0{path.read_text('utf-8')}\0".encode())
        return found.hexdigest()


def _files(folder: str) -> list[Path]:
    found = sorted(Path(folder).glob("*.txt"))
    if not found:
        raise IndexUnavailable(f"there are no notes in {folder!r}: expected a folder with files that end in .txt.")
    return found


def _passage(path: Path) -> Passage:
    text = path.read_text("utf-8")
    if not text.startswith("# "):
        return Passage(path.stem, text)
    title, _, rest = text.removeprefix("# ").partition("\n")
    return Passage(path.stem, rest, title)


def _words(text: str) -> set[str]:
    return set(_found(text.casefold()))


def _found(text: str) -> Iterator[str]:
    return (match.group() for match in re.finditer(r"\w+", text))
