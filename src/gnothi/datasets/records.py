"""Records of a file of JSON: one object per line, one array of objects, or one object that holds the array among other things.

Every complaint names file and line. A file may be packed with gz.
"""

from __future__ import annotations

import ast
import codecs
import contextlib
import gzip
import io
import json
import re
import tokenize
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, cast

from gnothi.errors import InvalidInput, shown
from gnothi.types import Question

# Cells of a table that hold a list: as JSON, Python and numpy write it.

_ARRAY = re.compile(r"array\((\[.*?\])(?:, *dtype=\w+)?\)", re.DOTALL)
_BETWEEN = re.compile(r"\s*(?:\|+|///|\n)\s*")


def opened_cell(cell: str) -> Any:
    """The list or the object that the cell is, else its text."""
    text = cell.strip()
    if not (text.startswith(("[", "{", "array(")) and text.endswith(("]", "}", ")"))):
        return cell
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _of_python(_ARRAY.sub(r"\1", text))
    return value if isinstance(value, list | dict) else cell


def is_broken_list(cell: str) -> bool:
    """Whether a text looks like a list and is none that can be read."""
    return cell.startswith("[") and cell.endswith("]")


def separated(cell: str, many: bool) -> list[str]:
    """The parts of a text that may be several answers. ``many``: the column's name says that it holds several."""
    parts = _BETWEEN.split(cell)
    return parts if len(parts) > 1 or not many else re.split(r"\s*;\s*", cell)


def _of_python(text: str) -> Any:
    """A list as Python writes it, or as numpy writes an array of text: without commas, which Python would take for one
    text."""
    try:
        strings = [token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.string.strip()]
        if [strings[0], strings[-1]] == ["[", "]"] and len(strings) > 3 and all(part[-1] in "\"'" for part in strings[1:-1]):
            return [ast.literal_eval(part) for part in strings[1:-1]]
        if any(a[-1] in "\"'" and b[0] in "\"'" for a, b in pairwise(strings)):
            return None
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, IndexError, RecursionError, MemoryError, tokenize.TokenError):
        return None


# Files of questions as bytes: packed with gz or not, in UTF-8 or, with a mark, in UTF-16 and UTF-32 as spreadsheets and
# PowerShell write them.

PACKED = ".gz"
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16's, which it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def bare_name(path: Path) -> str:
    """The file's name in small letters, without .gz: what says which format it has."""
    return path.name.lower().removesuffix(PACKED)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file in UTF-8, unpacked as it is read where its name ends in .gz. Raises OSError, or InvalidInput for a damaged gz
    file and for a mark of UTF-16 or UTF-32 that other bytes follow."""
    try:
        with path.open("rb") as raw:
            file = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if path.suffix.lower() == PACKED else raw
            head = file.read(4)
            encoding = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
            file.seek(0)
            yield file if encoding is None else io.BytesIO(file.read().decode(encoding).encode())
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidInput(
            f"{path} is not a complete gz file: {error}. Expected a file of questions; fetch it again."
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path}: got bytes that are not the {error.encoding} that its mark promises. Save the file in UTF-8."
        ) from None


@dataclass(frozen=True, slots=True)
class Record:
    """One object and where it stands. ``place`` is "FILE, line N" (or "FILE, item N" of an array)."""

    data: Mapping[str, Any]
    place: str
    number: int
    cells: bool = False
    """Whether it is a row of a table: text that would be a list elsewhere is a cell."""

    def invalid(self, got: str, expected: str) -> InvalidInput:
        return InvalidInput(f"{self.place}: got {got}, expected {expected}.")

    def text(self, *keys: str) -> str:
        """The first of ``keys`` that is there, as text that is not blank."""
        key = self.first(keys)
        if key is None:
            raise self.invalid(f"the keys {_listing(self.data)}", f"a key {_choice(keys)}")
        value = self.data[key]
        if not isinstance(value, str) or not value.strip():
            raise self.invalid(f"{key} = {shown(value)}", "text that is not empty")
        return value.strip()

    def texts(self, key: str) -> tuple[str, ...]:
        """The list of text under ``key``; empty where there is none."""
        value = self.data.get(key)
        if value is None:
            return ()
        if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(item, str) for item in value):
            raise self.invalid(f"{key} = {shown(value)}", "a list of text")
        return tuple(value)

    def identity(self, *keys: str) -> str:
        """The first of ``keys`` as text, else the record's number: stable as long as the lines above stay."""
        key = self.first(keys)
        if key is None or self.data[key] is None:
            return str(self.number)
        value = self.data[key]
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise self.invalid(f"{key} = {shown(value)}", "text or a whole number")
        return str(value)

    def answers(self, *keys: str) -> tuple[str, ...]:
        """Gold answers under the first of ``keys``: one answer or a list; true and false are yes and no, numbers their digits.

        An empty list or null says that there is no gold answer; a missing key is an error, for it is likely a misspelt one.
        """
        key = self.first(keys)
        if key is None:
            raise self.invalid(
                f"the keys {_listing(self.data)}", f"a key {_choice(keys)} with the gold answers, [] where none is known"
            )
        value = self.data[key]
        if self.cells and isinstance(value, str):
            self._check_single(key, value.strip())
        answers = list(_texts(value))
        if None in answers:
            raise self.invalid(f"{key} = {shown(value)}", "an answer or a list of answers, each text, a number, true or false")
        return tuple(dict.fromkeys(answer for answer in answers if answer))

    def _check_single(self, key: str, cell: str) -> None:
        """Raises InvalidInput for a cell that may hold several answers: as one it would make right answers wrong."""
        parts = separated(cell, many=key.lower().endswith("s"))
        if len(parts) > 1:
            listed = json.dumps(parts, ensure_ascii=False)
            raise self.invalid(
                f"{key} = {shown(cell)}",
                f"one answer, or a list as JSON: {shown(listed)} (or {shown(json.dumps([cell]))} if it is one)",
            )
        if is_broken_list(cell):
            raise self.invalid(f"{key} = {shown(cell)}", 'one answer, or a list as JSON: ["one", "two"]')

    def question(
        self, answers: Iterable[str] = (), kind: str = "", id: str = "id", text: str = "question", **metadata: Any
    ) -> Question:
        """With the id and the text under these keys, each answer once, and the metadata that are not None."""
        known = {name: value for name, value in metadata.items() if value is not None}
        once = tuple(dict.fromkeys(answers))
        return Question(self.identity(*id.split()), self.text(*text.split()), once, kind=kind, metadata=known)

    def inside(self, data: Mapping[str, Any]) -> Record:
        """An object of the record, at its place."""
        return Record(data, self.place, self.number)

    def known(self, key: str) -> str | None:
        """What stands there, if it is text."""
        value = self.data.get(key)
        return value if isinstance(value, str) and value else None

    def opened(self) -> Record:
        """With the cells that are lists or objects as such."""
        if not self.cells:
            return self
        opened = {key: opened_cell(value) if isinstance(value, str) else value for key, value in self.data.items()}
        return replace(self, data=opened)

    def plainly_named(self) -> Record:
        """With its keys as plain names ("Gold Answer" is gold_answer), unless two would be one."""
        named = {plain_name(key): value for key, value in self.data.items()}
        return replace(self, data=named) if len(named) == len(self.data) else self

    def first(self, keys: Sequence[str]) -> str | None:
        return next((key for key in keys if key in self.data), None)


_SHAPES = (
    ("text",),  # SQuAD on the hub, MS MARCO's spans
    ("answer",),  # KILT
    ("spans",),  # DROP
    ("value", "aliases", "normalized_aliases"),  # TriviaQA on the hub
)


def _texts(value: Any) -> Iterator[str | None]:
    """Answers in the shapes that data sets have them in: one, a list, objects of a list or of texts. None where one is of
    another shape."""
    if isinstance(value, bool):
        yield "yes" if value else "no"
    elif isinstance(value, str | int | float):
        yield str(value).strip()
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item) if not isinstance(item, list) else [None]
    elif isinstance(value, Mapping):
        keys = next((keys for keys in _SHAPES if keys[0] in value), ())
        for key in keys:
            inside = value.get(key)
            plain = isinstance(inside, str) or (isinstance(inside, list) and all(isinstance(one, str) for one in inside))
            yield from _texts(inside) if plain else [] if inside is None else [None]
        if not keys:
            yield None
    elif value is not None:
        yield None


def plain_name(key: str) -> str:
    return re.sub(r"\W+", "_", key.strip().lower()).strip("_")


@dataclass(frozen=True, slots=True)
class Format:
    """How the records of a file become questions. ``recognises`` is asked about the first record.

    ``container`` is the key under which the official file, one object, lists its records; ``table``: the official file is CSV
    or TSV; ``records``: the questions that one object of the file holds. ``columns``: the official file is a table of tabs
    without a header, has these columns, and a name that ends in ``ending``. ``named`` must be in the file's name. ``beside``
    is asked with the file: what it gives puts what another file beside it says into a record.
    Where several formats recognise a record, the most ``particular`` one has it: 0 for the keys that people use of their own
    accord, 1 for those of one data set, 2 for a data set that has all keys of another and some of its own.
    """

    name: str
    summary: str
    recognises: Callable[[Mapping[str, Any]], bool]
    question: Callable[[Record], Question]
    container: str = ""
    table: bool = False
    particular: int = 1
    named: str = ""
    records: Callable[[Record], Iterable[Record]] = lambda record: (record,)
    ending: str = ""
    columns: tuple[str, ...] = ()
    beside: Callable[[Path], Callable[[Record], Record]] | None = None


def has(*keys: str) -> Callable[[Mapping[str, Any]], bool]:
    """Recognises records that have all of these keys."""
    return lambda first: first.keys() >= set(keys)


def reads(
    name: str, summary: str, recognises: Callable[[Mapping[str, Any]], bool], **more: Any
) -> Callable[[Callable[[Record], Question]], Format]:
    """Makes a Format of the function that turns a record into a question."""
    return lambda question: Format(name, summary, recognises, question, **more)


def read_records(path: Path, containers: Collection[str] = ()) -> Iterator[Record]:
    """Each record of the file, lazily for JSON Lines. Blank lines are skipped but counted.

    ``containers`` are the keys under which an object that is the whole file may list the records.
    Raises InvalidInput for a file that cannot be read and for a line that is not UTF-8 or not a JSON object.
    """
    try:
        with opened(path) as file:
            first = next(filter(None, (line.removeprefix(b"\xef\xbb\xbf").strip() for line in file)), b"")
            if first.startswith(b"["):
                yield from _array(path)
                return
            if _opens_container(first, containers):
                yield from _container(path, containers)
                return
            file.seek(0)
            for number, line in enumerate(file, start=1):
                if record := _line(path, number, line):
                    yield record
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> InvalidInput:
    reason = error.strerror or str(error)
    return InvalidInput(f"cannot read {path}: {reason}. Expected a file of questions, one JSON object per line.")


def _opens_container(first: bytes, containers: Collection[str]) -> bool:
    """Whether the first line begins an object that goes over several lines, or is a whole one that lists records."""
    if not containers or first == b"{":
        return first == b"{"
    if not re.search(rb'"(?:%s)"\s*:\s*\[' % b"|".join(re.escape(key.encode()) for key in containers), first):
        return False
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return True  # it goes on in the next line
    return isinstance(value, dict) and "question" not in value and "query" not in value


def _parsed(text: str, place: str) -> Any:
    """The JSON, no object of which may have a key twice: one of the values would be lost."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        data = dict(pairs)
        if len(data) < len(pairs):
            (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
            raise InvalidInput(
                f"{place}: got the key {twice!r} twice in one object, expected it once, with a list for several values."
            )
        return data

    return json.loads(text, object_pairs_hook=once)


def _line(path: Path, number: int, line: bytes) -> Record | None:
    place = f"{path}, line {number}"
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        value = _parsed(text, place) if text else None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{place}: got bytes that are not UTF-8 text, expected one JSON object per line.") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{place}: got {shown(text)}, which is not JSON ({error}); expected one object per line.") from error
    return _record(value, place, number) if text else None


def _array(path: Path) -> Iterator[Record]:
    yield from _items(path, _whole(path, "an array of objects"))


def _container(path: Path, containers: Collection[str]) -> Iterator[Record]:
    listed = f"a list of questions under {_choice(sorted({*containers}))}, an array of objects, or one object per line"
    document = _whole(path, listed)
    lists = [document[key] for key in containers if isinstance(document.get(key), list)]
    if not lists:
        raise InvalidInput(f"{path}: got one object with the keys {_listing(document)}, expected {listed}.")
    yield from _items(path, lists[0])


def _whole(path: Path, expected: str) -> Any:
    try:
        with opened(path) as file:
            return _parsed(file.read().decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: got bytes that are not UTF-8 text, expected {expected}.") from error
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{path}, line {error.lineno}: got invalid JSON ({error.msg}), expected {expected}.") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path}: got JSON that cannot be read ({error}), expected {expected}.") from error


def _items(path: Path, items: Sequence[Any]) -> Iterator[Record]:
    for number, item in enumerate(items, start=1):
        yield _record(item, f"{path}, item {number}", number)


def _record(value: Any, place: str, number: int) -> Record:
    if not isinstance(value, dict):
        raise InvalidInput(f"{place}: got {shown(value)}, expected a JSON object with a question.")
    return Record(value, place, number)


def _listing(data: Mapping[str, Any]) -> str:
    return shown(", ".join(data)) if data else "(none)"


def _choice(keys: Sequence[str]) -> str:
    return " or ".join(map(repr, keys))
