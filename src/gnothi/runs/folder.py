"""A run on disk: what was asked for, each row as it was finished, the events behind it, the summary, how fast it went.

``config.toml`` fully resolved settings; ``rows.jsonl`` and ``events.jsonl`` grow by one line per finished question and method
and survive SIGKILL (a torn last line is cut off when the run goes on); ``summary.json`` is written at the end. Where a
question was tried twice, the later line counts; a finished run holds one row per question and method, in order.
``pace.jsonl`` gets a line each time questions were asked; what is killed leaves none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gnothi.config import to_toml
from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.runs.journal import (
    COMPUTED,
    CONFIG,
    DATE,
    EXECUTION,
    FORMAT,
    PRECISION,
    VERSION,
    Journal,
    as_line,
    claim,
    read_config,
    read_lines,
    replace_file,
)
from gnothi.runs.questions import changed
from gnothi.runs.rows import Key, Row, jsonable
from gnothi.runs.stored_rows import from_dict
from gnothi.types import Question

__all__ = ["EXECUTION", "RunFolder", "read_config", "read_events", "read_rows", "replace_file"]

ROWS = "rows.jsonl"


class RunFolder:
    """A run opened for writing by one process. Use as a context manager."""

    def __init__(self, path: Path, config: Mapping[str, Any], questions: Sequence[Question] = ()) -> None:
        """Make the folder, or go on with the run in it, also where ``questions`` were added after those it began with.

        ``config`` maps dotted keys to settings. Raises InvalidSetting where the run in the folder was made with others, or
        where the folder holds something else; InvalidInput where its files are damaged.
        """
        self.path = path
        self._lock = claim(path, config, "run", lambda before: changed(before, questions, read_rows(path)), ROWS)
        try:
            self.rows: dict[Key, Row] = {row.key: row for row in read_rows(path)}
            self._rows, self._events = Journal(path / ROWS), Journal(path / "events.jsonl")
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()
        self._events.close()
        self._lock.close()

    @property
    def precision(self) -> str:
        """In which the model computes whose answers these are; empty before the first."""
        return str(read_config(self.path).get(PRECISION, ""))

    @property
    def date(self) -> str:
        """What its prompts take for today; empty before the first answer, and where they tell no date."""
        return str(read_config(self.path).get(DATE, ""))

    def settle(self, precision: str | None, date: str = "") -> None:
        """Record both, once. Raises InvalidSetting where the model now computes in another precision."""
        if date and not self.date:
            replace_file(self.path / CONFIG, to_toml({FORMAT: VERSION, **read_config(self.path), DATE: date}))
        before = self.precision
        if precision and not before:
            config = read_config(self.path)
            replace_file(self.path / CONFIG, to_toml({FORMAT: VERSION, **config, PRECISION: precision}))
        elif precision and precision != before:
            raise InvalidSetting(
                f"the run {self.path} was made with a model in {before}, got it in {precision}: its numbers are not "
                "the same. Go on where the model computes as before, or choose another <--out>."
            )

    def note_model(self, computed: Mapping[str, str]) -> None:
        """Record how the model says that it computes."""
        config = read_config(self.path)
        rest = {key: value for key, value in config.items() if not key.startswith(COMPUTED)}
        updated = rest | {f"{COMPUTED}{key}": value for key, value in computed.items()}
        if updated != config:
            replace_file(self.path / CONFIG, to_toml({FORMAT: VERSION, **updated}))

    def append(self, row: Row, events: Iterable[Mapping[str, Any]], trace: str | None = None) -> None:
        """Keep a finished question. The events go first, so that a row on disk always has them."""
        record = {"method": row.method, "question_id": row.question_id, "events": list(events)}
        self._events.append(record if trace is None else {**record, "traceback": trace})
        self._rows.append(row.as_dict())
        self.rows[row.key] = row

    def finish(self, order: Sequence[Key]) -> list[Row]:
        """Rewrite the rows as one per key in ``order``: an interrupted run and an undisturbed one end in the same file."""
        rows = [self.rows[key] for key in order]
        self._rows.rewrite(row.as_dict() for row in rows)
        return rows

    def write_summary(self, summary: object) -> None:
        """Of ``report.summary``, or any other record."""
        self._write("summary.json", summary)

    def write_asked(self, asked: Mapping[str, Mapping[str, str]]) -> None:
        """How models behind an API were asked the last time, by model: what was left out of requests and why, and the like."""
        self._write("asked.json", asked)

    def _write(self, name: str, record: object) -> None:
        text = json.dumps(jsonable(record), ensure_ascii=False, indent=2, allow_nan=False)
        replace_file(self.path / name, f"{text}\n")


def read_rows(path: Path) -> list[Row]:
    """The latest row of each question and method, in the file's order; a torn last line is left aside. Raises InvalidInput
    naming file and line for one that is no row."""
    rows: dict[Key, Row] = {}
    for place, data in read_lines(path / ROWS):
        row = from_dict(data, place)
        rows.pop(row.key, None)
        rows[row.key] = row
    return list(rows.values())


def read_events(path: Path, keys: Iterable[Key]) -> dict[Key, list[dict[str, Any]]]:
    """The events of some questions, of the last time each was tried."""
    wanted = set(keys)
    return {key: events for key, events in every_event(path) if key in wanted}


def every_event(path: Path) -> Iterator[tuple[Key, list[dict[str, Any]]]]:
    """Of each question, each time it was tried. The file is read line by line and may be large."""
    for _, data in read_lines(path / "events.jsonl"):
        events = data.get("events")
        yield (str(data.get("method", "")), str(data.get("question_id", ""))), events if isinstance(events, list) else []


PACES = "pace.jsonl"


@dataclass(frozen=True, slots=True)
class Pace:
    """In ``seconds`` of the clock, opening left out, ``answers`` came that took ``tokens``, read and written; ``under_way``
    many questions were asked at a time, by so many ``processes``."""

    seconds: float
    answers: int
    tokens: float
    under_way: int
    processes: int = 1


def note(run: Path, pace: Pace) -> None:
    with (run / PACES).open("a", encoding="utf-8") as file:
        file.write(as_line(asdict(pace)))


def paces(run: Path) -> list[Pace]:
    """All of a run; none where it was never timed. Raises InvalidInput for a line that is none."""
    if not (run / PACES).is_file():
        return []
    return [_pace(data, place) for place, data in read_lines(run / PACES)]


def _pace(data: Mapping[str, Any], place: str) -> Pace:
    try:
        pace = Pace(**{key: data[key] for key in Pace.__slots__})
        fine = pace.seconds > 0 and pace.answers >= 0 and pace.tokens >= 0 and pace.processes >= 1
    except (KeyError, TypeError):
        fine = False
    if not fine:
        raise InvalidInput(f"{place}: expected seconds, answers, tokens, under_way and processes of a run, got {data!r:.80}.")
    return pace
