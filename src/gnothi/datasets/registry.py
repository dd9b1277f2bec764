"""From what a user names (a data set, a file) to a list of questions."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from gnothi.datasets.formats import generic
from gnothi.datasets.records import Format, Record, bare_name, opened, plain_name, read_records, unreadable
from gnothi.datasets.tables import PARQUET, TABLES, read_parquet, read_table
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.files import nearest
from gnothi.registry import Entry, Registry
from gnothi.schemes import Scheme, as_scheme
from gnothi.types import Question

# Data sets that have a name and no file.


@dataclass(frozen=True, kw_only=True)
class DataSet(Scheme[Iterable[Question]]):
    """``open`` takes the argument, what stands behind ``NAME:`` (mostly nothing), and how many questions are wanted at least
    (None: as many as there are); it may give more. ``parts`` are arguments worth listing, each with a line about it."""

    parts: Mapping[str, str] = field(default_factory=dict)


def as_data_set(source: DataSet | Callable[[str, int | None], Iterable[Question]]) -> DataSet:
    """A function of the argument and the limit is a data set, too."""
    if isinstance(source, DataSet):
        return source
    plain = as_scheme(source)
    return DataSet(open=plain.open, summary=plain.summary, fingerprint=plain.fingerprint)


DATASETS: Registry[DataSet | Callable[[str, int | None], Iterable[Question]]] = Registry(
    "data set",
    "gnothi.datasets",
    also={
        "lab": "gnothi.lab.named:QUESTIONS",
        "lab-train": "gnothi.lab.named:TRAINING",
        "csqa-inhouse": "gnothi.datasets.registry:INHOUSE",
    },
)
_OFFICIAL = {
    "choice": ("commonsenseqa", "medqa", "mmlu", "openbookqa"),
    "generic": ("generic",),
    "multihop": ("hotpotqa", "iirc", "musique", "strategyqa", "two_wiki"),
    "open_domain": (
        "beir", "dpr", "kilt", "natural_questions", "nq_open", "popqa", "selfaware", "squad", "triviaqa", "truthfulqa",
        "webquestions",
    ),
}  # fmt: skip
FORMATS: Registry[Format] = Registry(
    "data set format",
    "gnothi.formats",
    attribute="FORMAT",
    also={name: f"gnothi.datasets.formats.{module}:{name}" for module, names in _OFFICIAL.items() for name in names},
)

_JSON = (".json", ".jsonl", ".ndjson")
_CONTAINERS = ("data", "questions", "examples", "instances", "rows")  # of files that are one object
_TEXTS = ("text", "contents", "passage", "passage_text", "wikipedia_id")


def file_formats() -> Mapping[str, Format]:
    """Formats of files by name, the most particular first."""
    return {format.name: format for _, format in _formats()}


def load(source: str, format: str | None = None, limit: int | None = None, answered: bool = True) -> list[Question]:
    """The first ``limit`` questions of a named data set or of a file, in their order. ``answered`` False: a record that has a
    question and says nothing of answers has none.

    Raises UnknownName for a name or format that does not exist, InvalidInput (with file and line) for anything unusable.
    """
    if limit is not None and limit < 1:
        raise InvalidSetting(f"<--limit>: got {limit}, expected at least 1 (leave it out for all questions).")
    name, _, argument = source.partition(":")
    if name in DATASETS:
        if format is not None:
            raise InvalidSetting(
                f"<--format>: got {format!r} for the data set {source!r}, expected none: only files have a format. Leave "
                "it out."
            )
        questions = as_data_set(DATASETS.find(name)).open(argument, limit)
    else:
        questions = _from_file(_existing(source), format, answered)
    loaded = list(islice(questions, limit))
    if not loaded:
        raise InvalidInput(f"{source} holds no questions; expected at least one.")
    return loaded


def is_named(source: str) -> bool:
    """Whether it is the name of a data set, with or without an argument, and so no file."""
    return source.partition(":")[0] in DATASETS


def data_sets() -> dict[str, tuple[str, str]]:
    """Named data sets and their parts, each with a line about it and the distribution that brings it."""
    summaries: dict[str, tuple[str, str]] = {}
    for entry, source in DATASETS.items():
        one = as_data_set(source)
        summaries[entry.name] = (one.summary, entry.origin)
        summaries |= {f"{entry.name}:{part}": (summary, entry.origin) for part, summary in one.parts.items()}
    return summaries


def formats_listed() -> dict[str, tuple[str, str]]:
    """Formats of files, each with a line about it and the distribution that brings it."""
    return {format.name: (format.summary, entry.origin) for entry, format in _formats()}


def _formats() -> list[tuple[Entry, Format]]:
    return sorted(FORMATS.items(), key=lambda pair: -pair[1].particular)


def _existing(source: str) -> Path:
    path = Path(source)
    if path.is_file():
        return path
    names = ", ".join(DATASETS.names())
    if path.is_dir():
        raise InvalidInput(f"got the folder {source}, expected a file of questions or a data set: {names}.")
    if not path.suffix and os.sep not in source:
        near = nearest(source)
        if near and not difflib.get_close_matches(source, DATASETS.names(), n=1):
            raise InvalidInput(f"unknown data set: got {source!r}, and there is no such file. {near}Expected one of: {names}.")
        raise UnknownName("data set", source, [*DATASETS.names(), "a file of questions"])
    raise InvalidInput(f"there is no file {source}. {nearest(source)}Expected a file of questions or a data set: {names}.")


def _from_file(path: Path, format: str | None, answered: bool) -> Iterator[Question]:
    known = file_formats()
    if format is not None and format not in known:
        raise UnknownName("data set format", format, known)
    name = bare_name(path)
    if path.parent.name.lower() == "queries":  # MTEB's folder
        name = f"queries-{name}"
    chosen = known[format] if format is not None else None
    chosen = chosen or next((one for one in known.values() if one.ending and name.endswith(one.ending)), None)
    completed: Callable[[Record], Record] | None = None
    plain: bool | None = None  # whether keys are to be read as plain names
    places: dict[str, str] = {}
    for record in _records(path, chosen, known):
        if plain is None:
            chosen, plain = _recognised(name, record, known if chosen is None else {chosen.name: chosen}, answered)
        record = _read(record, plain, answered)
        assert chosen is not None
        if chosen.beside is not None and completed is None:
            completed = chosen.beside(path)
        for part in chosen.records(record if completed is None else completed(record)):
            question = chosen.question(part)
            place = f"{part.place}, which has no id and takes its number" if _is_counted(part, question) else part.place
            if question.id in places:
                raise InvalidInput(
                    f"{place}: got the id {question.id!r} again (first at {places[question.id]}), expected ids to be unique."
                )
            places[question.id] = place
            yield question


def _is_counted(record: Record, question: Question) -> bool:
    """Whether the question's id is the record's number since it has none."""
    ids = (str(value) for key, value in record.data.items() if "id" in key.lower())
    return question.id == str(record.number) and question.id not in ids


def _records(path: Path, chosen: Format | None, known: Mapping[str, Format]) -> Iterator[Record]:
    """A table where the file's name or the format that was named says so, else JSON."""
    name = bare_name(path)
    if name.endswith(PARQUET):
        return read_parquet(path)
    if chosen is not None and chosen.columns and not name.endswith(_JSON):
        return read_table(path, chosen.columns)
    if name.endswith(TABLES) or (chosen is not None and chosen.table and not name.endswith(_JSON)):
        return read_table(path, fits=lambda columns: _fits(name, columns, known))
    return read_records(path, [*(format.container for format in known.values() if format.container), *_CONTAINERS])


def _fits(name: str, columns: Mapping[str, Any], known: Mapping[str, Format]) -> bool:
    """Whether a header of these columns is of a format, with or without answers."""
    try:
        _recognised(name, Record(columns, "", 0), known, answered=False)
    except InvalidInput as error:
        return isinstance(error, _Several)
    return True


def _read(record: Record, plain: bool, answered: bool) -> Record:
    named = record.opened().plainly_named() if plain else record.opened()
    return named if answered else generic.unanswered(named)


class _Several(InvalidInput):
    """A record that fits several formats."""


def _recognised(name: str, first: Record, known: Mapping[str, Format], answered: bool) -> tuple[Format, bool]:
    """The format that the first record of a file is in, and whether that takes plain names for its keys."""
    for plain in (False, True):
        data = _read(first, plain, answered).data
        fitting = [format_ for format_ in known.values() if format_.named in name and format_.recognises(data)]
        best = [format_ for format_ in fitting if format_.particular == fitting[0].particular]
        if len(best) == 1:
            return best[0], plain
        if best:
            names = " and ".join(format_.name for format_ in best)
            raise _Several(f"{first.place}: the record fits several formats: {names}. Name one with <--format>.")
    if len(known) == 1:  # the user has named it: what is missing is said by its own reader
        return next(iter(known.values())), False
    raise InvalidInput(f"{first.place}: the format is not recognised: {_guessed(first, known)}")


def _guessed(first: Record, known: Mapping[str, Format]) -> str:
    """What the record holds, and what is missing to be the nearest thing that is known."""
    names = [plain_name(key) for key in first.data]
    got = f"got the keys {', '.join(first.data) or '(none)':.200}"
    question, answer = first.plainly_named().first(generic.QUESTIONS), first.plainly_named().first(generic.ANSWERS)
    if question is None and answer is None and any(key in names for key in _TEXTS):
        return (
            f"{got}, which look like passages, not questions. Index passages with `gnothi index build`. A file of questions "
            f"has the keys {generic.QUESTIONS[0]} and {generic.ANSWERS[0]}; for another format, use <--format>."
        )
    mentioned = {one.name: sum(name in re.findall(r"\w+", one.summary.lower()) for name in names) for one in known.values()}
    nearest = max(mentioned, key=lambda name: mentioned[name])
    near = f" The nearest format is {nearest} ({known[nearest].summary})." if mentioned[nearest] > 1 else ""
    if question is not None:
        missing = f"the question stands under {question!r}, and no key is known as its answers ({_listed(generic.ANSWERS)})"
    elif answer is not None:
        missing = f"the answers stand under {answer!r}, and no key is known as the question ({_listed(generic.QUESTIONS)})"
    else:
        missing = f"no key is known as the question ({_listed(generic.QUESTIONS)}) or its answers ({_listed(generic.ANSWERS)})"
    return f"{got}: {missing}. Rename the keys, or name the format with <--format> (gnothi list datasets lists them).{near}"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:4])} ..."


# Questions to be answered, whose answers nobody may know: a line each, or records of a data set's file.

_RECORDS = (b"{", b"[")


def load_unanswered(source: str, format: str | None = None, limit: int | None = None) -> list[Question]:
    """The first ``limit`` questions of a file: as ``load``, but that records may lack answers; or, of a file that is none of
    records, one a line that is not blank, whose id is the line's number. Raises as ``load``."""
    path = Path(source)
    if format is not None or bare_name(path).endswith((*TABLES, PARQUET)) or not path.is_file() or _holds_records(path):
        return load(source, format, limit, answered=False)
    questions = list(islice(_lines(path), limit))
    if not questions:
        raise InvalidInput(f"{path} holds no questions; expected at least one, a line each.")
    return questions


def _holds_records(path: Path) -> bool:
    try:
        with opened(path) as file:
            first = next((bare for line in file if (bare := line.removeprefix(b"\xef\xbb\xbf").strip())), b"")
    except OSError as error:
        raise unreadable(path, error) from error
    return first.startswith(_RECORDS)


def _lines(path: Path) -> Iterator[Question]:
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                raise InvalidInput(f"{path}, line {number}: got bytes that are not UTF-8 text, expected a question.") from error
            if text:
                yield Question(str(number), text)


# CommonsenseQA's in-house split (Lin et al. 2019): the official training file, divided by a list of ids beside it. The
# official test set has no public answers. Work with graphs therefore trains on the listed part and tests on the rest.

LIST = "inhouse_split_qids.txt"
_PARTS = ("train", "test")


def inhouse(argument: str, limit: int | None) -> Iterator[Question]:  # noqa: ARG001
    """``train:FILE`` are the listed questions of the file, ``test:FILE`` the others. Raises InvalidInput."""
    part, _, name = argument.partition(":")
    if part not in _PARTS or not name:
        raise InvalidInput(
            f"csqa-inhouse: got {argument!r}, expected csqa-inhouse:train:FILE or csqa-inhouse:test:FILE, where FILE is "
            "CommonsenseQA's train_rand_split.jsonl."
        )
    path = Path(name).with_name(LIST)
    if not path.is_file():
        raise InvalidInput(
            f"there is no {path}: expected the ids of the in-house training questions, one a line, beside {name}."
        )
    listed = set(path.read_text(encoding="utf-8").split())
    return (one for one in load(name) if (one.id in listed) == (part == "train"))


INHOUSE = DataSet(
    open=inhouse,
    summary="CommonsenseQA's in-house split: csqa-inhouse:train:FILE and csqa-inhouse:test:FILE",
)
