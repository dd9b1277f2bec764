"""A run on disk: what was asked for, each row as it was finished, the events behind it, the summary.

``config.toml`` fully resolved settings; ``rows.jsonl`` and ``events.jsonl`` grow by one line per finished question and method
and survive SIGKILL (a torn last line is cut off when the run goes on); ``summary.json`` is written at the end. Where a
question was tried twice, the later line counts; a finished run holds one row per question and method, in order.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from gnothi.config import to_toml
from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.evaluation.rows import Key, Row, from_dict, jsonable
from gnothi.events import Event

EXECUTION = "execution."
"""Settings under this prefix say how a run is carried out, not what it computes: they may differ when it goes on."""


class RunFolder:
    """A run opened for writing by one process. Use as a context manager."""

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        """Make the folder, or go on with the run in it.

        ``config`` maps dotted keys to settings. Raises InvalidSetting where the run in the folder was made with others, or
        where the folder holds something else; InvalidInput where its files are damaged.
        """
        self.path = path
        _make(path)
        self._lock = _lock(path)
        try:
            _agree(path, config)
            for name in ("rows.jsonl", "events.jsonl"):
                _cut_torn_line(path / name)
            self.rows: dict[Key, Row] = {row.key: row for row in read_rows(path)}
            self._rows = (path / "rows.jsonl").open("ab", buffering=0)
            self._events = (path / "events.jsonl").open("ab", buffering=0)
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._rows, self._events):
            with suppress(OSError):
                os.fsync(file.fileno())
            file.close()
        self._lock.close()

    def append(self, row: Row, events: Iterable[Event], trace: str | None = None) -> None:
        """Keep a finished question. The events go first, so that a row on disk always has them."""
        record = {"method": row.method, "question_id": row.question_id, "events": [event.as_dict() for event in events]}
        _append(self._events, record if trace is None else {**record, "traceback": trace})
        _append(self._rows, row.as_dict())
        self.rows[row.key] = row

    def finish(self, order: Sequence[Key]) -> list[Row]:
        """Rewrite the rows as one per key in ``order``: an interrupted run and an undisturbed one end in the same file."""
        rows = [self.rows[key] for key in order]
        replace_file(self.path / "rows.jsonl", "".join(_line(row.as_dict()) for row in rows))
        self._rows.close()
        self._rows = (self.path / "rows.jsonl").open("ab", buffering=0)
        return rows

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        replace_file(
            self.path / "summary.json", json.dumps(jsonable(summary), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        )


# --- reading -------------------------------------------------------------------------------------------------------


def read_config(path: Path) -> dict[str, Any]:
    """The settings of a run by dotted key. Raises InvalidInput where there is no run."""
    file = path / "config.toml"
    try:
        return _flatten(tomllib.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise InvalidInput(
            f"{path} is not a run: it holds no config.toml. Expected a folder written by gnothi eval --out."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}. Restore it, or choose another folder.") from error


def read_rows(path: Path) -> list[Row]:
    """The latest row of each question and method, in the file's order; a torn last line is left aside."""
    rows: dict[Key, Row] = {}
    for place, data in _read_lines(path / "rows.jsonl"):
        row = from_dict(data, place)
        rows.pop(row.key, None)
        rows[row.key] = row
    return list(rows.values())


def read_events(path: Path, keys: Iterable[Key]) -> dict[Key, list[dict[str, Any]]]:
    """The events of some questions, of the last time each was tried. The file is read line by line and may be large."""
    wanted = set(keys)
    found: dict[Key, list[dict[str, Any]]] = {}
    for _, data in _read_lines(path / "events.jsonl"):
        key = (data.get("method", ""), data.get("question_id", ""))
        if key in wanted:
            found[key] = data.get("events", [])
    return found


def _read_lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if not file.exists():
        return
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                data = json.loads(line)
            except ValueError:
                data = None
            if not isinstance(data, dict):
                place = f"{file}, line {number}"
                raise InvalidInput(
                    f"{place}: got {line[:40]!r}, expected a JSON object. Remove the line to go on with the run."
                )
            yield f"{file}, line {number}", data


# --- opening -------------------------------------------------------------------------------------------------------


def _make(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise InvalidSetting(f"--out: got the file {path}, expected a folder for the run.")
    path.mkdir(parents=True, exist_ok=True)
    others = sorted(item.name for item in path.iterdir() if not item.name.startswith("."))
    if others and "config.toml" not in others:
        raise InvalidSetting(
            f"--out: the folder {path} holds other files ({others[0]}, ...); expected an empty one, a new one or a run."
        )


def _lock(path: Path) -> BinaryIO:
    """Only one process writes to a run; the lock goes with the process, however it ends."""
    file = (path / ".lock").open("ab")
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # no such locks on this system
        pass
    except OSError:
        file.close()
        raise InvalidSetting(
            f"--out: another process is writing to the run {path}. Wait for it, or choose another folder."
        ) from None
    return file


def _agree(path: Path, config: Mapping[str, Any]) -> None:
    text = to_toml(config)
    if not (path / "config.toml").exists():
        replace_file(path / "config.toml", text)
        return
    before, now = read_config(path), _flatten(tomllib.loads(text))
    for key in sorted(before.keys() | now.keys()):
        if not key.startswith(EXECUTION) and before.get(key) != now.get(key):
            raise InvalidSetting(
                f"the run {path} was made with {key} = {before.get(key, '(unset)')!r}, got {now.get(key, '(unset)')!r}. "
                "Give the same settings to go on with it, or choose another --out."
            )


def _flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in table.items():
        flat |= _flatten(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return flat


# --- writing -------------------------------------------------------------------------------------------------------


def replace_file(path: Path, text: str) -> None:
    """Write a whole file so that at any moment the old or the new one is there."""
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _line(data: Mapping[str, Any]) -> str:
    return json.dumps(jsonable(data), ensure_ascii=False, allow_nan=False) + "\n"


def _append(file: BinaryIO, data: Mapping[str, Any]) -> None:
    content = _line(data).encode("utf-8", errors="replace")
    start = file.seek(0, os.SEEK_END)
    try:
        while content:
            content = content[file.write(content) :]
    except OSError as error:
        # A full disk: leave whole lines only. The system's own error does not name the file.
        with suppress(OSError):
            file.truncate(start)
        raise OSError(error.errno, error.strerror, str(file.name)) from error


def _cut_torn_line(path: Path) -> None:
    """What SIGKILL or a full disk left behind the last line end."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        keep = end
        while keep:
            step = min(keep, 1 << 16)
            file.seek(keep - step)
            newline = file.read(step).rfind(b"\n")
            keep -= step if newline < 0 else step - newline - 1
            if newline >= 0:
                break
        if keep < end:
            file.truncate(keep)
