"""Records of a file of JSON: one object per line, or one array of objects. Every complaint names file and line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnothi.errors import InvalidInput
from gnothi.types import Question


@dataclass(frozen=True, slots=True)
class Record:
    """One object and where it stands. ``place`` is "FILE, line N" (or "FILE, item N" of an array)."""

    data: Mapping[str, Any]
    place: str
    number: int

    def invalid(self, got: str, expected: str) -> InvalidInput:
        return InvalidInput(f"{self.place}: got {got}, expected {expected}.")

    def text(self, *keys: str) -> str:
        """The first of ``keys`` that is there, as text that is not blank."""
        key = self.first(keys)
        if key is None:
            raise self.invalid(f"the keys {_listing(self.data)}", f"a key {_choice(keys)}")
        value = self.data[key]
        if not isinstance(value, str) or not value.strip():
            raise self.invalid(f"{key} = {_short(value)}", "text that is not empty")
        return value.strip()

    def texts(self, key: str) -> tuple[str, ...]:
        """The list of text under ``key``; empty where there is none."""
        value = self.data.get(key)
        if value is None:
            return ()
        if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(item, str) for item in value):
            raise self.invalid(f"{key} = {_short(value)}", "a list of text")
        return tuple(value)

    def identity(self, *keys: str) -> str:
        """The first of ``keys`` as text, else the record's number: stable as long as the lines above stay."""
        key = self.first(keys)
        if key is None or self.data[key] is None:
            return str(self.number)
        value = self.data[key]
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise self.invalid(f"{key} = {_short(value)}", "text or a whole number")
        return str(value)

    def answers(self, *keys: str) -> tuple[str, ...]:
        """Gold answers under the first of ``keys``: one answer or a list; true and false are yes and no, numbers their digits.

        An empty list or null says that there is no gold answer; a missing key is an error, for it is likely a misspelt one.
        """
        key = self.first(keys)
        if key is None:
            raise self.invalid(f"the keys {_listing(self.data)}", f"a key {_choice(keys)} with the gold answers")
        value = self.data[key]
        items = [] if value is None else value if isinstance(value, list) else [value]
        found = []
        for item in items:
            if isinstance(item, bool):
                found.append("yes" if item else "no")
            elif isinstance(item, str | int | float):
                found.append(str(item).strip())
            else:
                raise self.invalid(
                    f"{key} = {_short(value)}", "an answer or a list of answers, each text, a number, true or false"
                )
        return tuple(dict.fromkeys(answer for answer in found if answer))

    def first(self, keys: Sequence[str]) -> str | None:
        return next((key for key in keys if key in self.data), None)


@dataclass(frozen=True, slots=True)
class Format:
    """How the records of a file become questions. ``recognises`` is asked about the first record."""

    name: str
    summary: str
    recognises: Callable[[Mapping[str, Any]], bool]
    question: Callable[[Record], Question]


def read_records(path: Path) -> Iterator[Record]:
    """Each record of the file, lazily for JSON Lines. Blank lines are skipped but counted.

    Raises InvalidInput for a file that cannot be read and for a line that is not UTF-8 or not a JSON object.
    """
    try:
        with path.open("rb") as file:
            if file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
                yield from _array(path)
                return
            file.seek(0)
            for number, line in enumerate(file, start=1):
                if record := _line(path, number, line):
                    yield record
    except OSError as error:
        reason = error.strerror or str(error)
        raise InvalidInput(f"cannot read {path}: {reason}. Expected a file of questions, one JSON object per line.") from error


def _line(path: Path, number: int, line: bytes) -> Record | None:
    place = f"{path}, line {number}"
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        value = json.loads(text) if text else None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{place}: got bytes that are not UTF-8 text, expected one JSON object per line.") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{place}: got {_short(text)}, which is not JSON ({error}); expected one object per line."
        ) from error
    return _record(value, place, number) if text else None


def _array(path: Path) -> Iterator[Record]:
    try:
        items = json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: got bytes that are not UTF-8 text, expected an array of JSON objects.") from error
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"{path}, line {error.lineno}: got invalid JSON ({error.msg}), expected an array of objects."
        ) from error
    except RecursionError as error:
        raise InvalidInput(f"{path}: got JSON nested too deeply, expected an array of objects.") from error
    for number, item in enumerate(items, start=1):
        yield _record(item, f"{path}, item {number}", number)


def _record(value: Any, place: str, number: int) -> Record:
    if not isinstance(value, dict):
        raise InvalidInput(f"{place}: got {_short(value)}, expected a JSON object with a question.")
    return Record(value, place, number)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _listing(data: Mapping[str, Any]) -> str:
    return _short(", ".join(data)) if data else "(none)"


def _choice(keys: Sequence[str]) -> str:
    return " or ".join(map(repr, keys))
