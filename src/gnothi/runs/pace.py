"""How fast a run went: one line in ``pace.jsonl`` each time questions were asked. What is killed leaves none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gnothi.errors import InvalidInput
from gnothi.runs.journal import as_line, read_lines

FILE = "pace.jsonl"


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
    with (run / FILE).open("a", encoding="utf-8") as file:
        file.write(as_line(asdict(pace)))


def paces(run: Path) -> list[Pace]:
    """All of a run; none where it was never timed. Raises InvalidInput for a line that is none."""
    if not (run / FILE).is_file():
        return []
    return [_pace(data, place) for place, data in read_lines(run / FILE)]


def _pace(data: Mapping[str, Any], place: str) -> Pace:
    try:
        found = Pace(**{key: data[key] for key in Pace.__slots__})
        fine = found.seconds > 0 and found.answers >= 0 and found.tokens >= 0 and found.processes >= 1
    except (KeyError, TypeError):
        fine = False
    if not fine:
        raise InvalidInput(f"{place}: expected seconds, answers, tokens, under_way and processes of a run, got {data!r:.80}.")
    return found
