"""A folder of notes: one passage a text file, ranked by the words it shares with the query."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from gnothi.errors import IndexUnavailable


class Notes:
    """All ``*.txt`` of a folder, for ``--index notes:FOLDER``. A first line that begins with "# " is the title."""

    def __init__(self, folder: str) -> None:
        """Raises IndexUnavailable for a folder that is not there or holds no notes."""
        self.name = f"notes:{folder}"
        self._notes = [_note(path) for path in _files(folder)]

    def search(self, query: str, k: int) -> list[dict[str, object]]:
        asked = _words(query)
        shared = [(len(asked & _words(f"{note['title']} {note['text']}")), note) for note in self._notes]
        best = sorted(((count, note) for count, note in shared if count), key=lambda one: (-one[0], one[1]["id"]))
        return [{**note, "score": count} for count, note in best[:k]]

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


def _note(path: Path) -> dict[str, str]:
    text = path.read_text("utf-8")
    title, _, rest = text.removeprefix("# ").partition("\n") if text.startswith("# ") else ("", "", text)
    return {"id": path.stem, "title": title, "text": rest}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
