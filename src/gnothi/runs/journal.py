"""Work that outlives SIGKILL: a folder that one process writes to, what it was made with, and lines added as work is done.

``config.toml`` in the folder holds the settings; a ``Journal`` is a file of JSON Lines whose torn last line is cut off when the
work goes on. A run of ``gnothi eval`` is such a folder, and so is a utility reference.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from gnothi.config import flatten, to_toml
from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.files import TOML_ERRORS, nearest, regular
from gnothi.locks import hold
from gnothi.runs.rows import jsonable

CONFIG = "config.toml"
EXECUTION = "execution."
"""Settings under this prefix say how work is carried out, not what it computes: they may differ when it goes on."""

COMPUTED = f"{EXECUTION}computed."
"""How the model said that it computes, known once it is open: device, decode path and the like."""

FORMAT, VERSION = "format", 2
"""What the keys of ``config.toml`` and the lines beside it mean. It grows where an earlier version would misread them."""

FINGERPRINTS = "fingerprints."
"""``fingerprints.KEY`` tells the content of what the setting ``KEY`` names. It counts where both sides have one: what is gone
has none."""

OBJECTS = "objects."
"""``objects.KEY`` tells where the code stands of what the setting ``KEY`` was given as: an object, or a function."""

PRECISION = f"{FINGERPRINTS}model.dtype"
"""In which precision the model computes, known once it is open."""

DATE = f"{FINGERPRINTS}model.date"
"""What prompts take for today, where templates tell the date; known once the models are open."""

_TOLD = 3
"""So many settings that differ are told."""

_QUESTIONS = "dataset.fingerprint"
_OF_QUESTIONS = (_QUESTIONS, "dataset.questions", "dataset.limit")


Changed = Callable[[Mapping[str, Any]], str | None]
"""Of the settings before: what of the questions has changed, None where they only became more."""


def claim(
    path: Path, config: Mapping[str, Any], what: str, changed: Changed = lambda _: "", work: str | None = None
) -> ExitStack:
    """Make the folder, or go on with the work in it; the result is its lock, to be closed at the end.

    ``config`` maps dotted keys to settings; ``what`` names the work in messages ("run"). Other settings replace
    those before where the file ``work`` is there and empty: nothing was done by them. Raises InvalidSetting where the folder
    holds work of other settings, or something else, or where another process writes to it.
    """
    _make(path, what)
    lock = hold(
        path / ".lock",
        InvalidSetting,
        f"<--out>: another process is writing to the {what} {path}. Wait for it, or choose another folder.",
    )
    try:
        try:
            _agree(path, config, what, changed)
        except InvalidSetting:
            if not work or not (path / work).is_file() or (path / work).stat().st_size:
                raise
            replace_file(path / CONFIG, to_toml({FORMAT: VERSION, **config}))
    except BaseException:
        lock.close()
        raise
    return lock


class Journal:
    """A file of JSON Lines, opened for adding to it; whatever ended the last process, it holds whole lines only. ``sync``: each
    line is on the disk itself before it counts as written."""

    def __init__(self, path: Path, sync: bool = False) -> None:
        self.path, self._sync = path, sync
        _cut_torn_line(path)
        self._file = path.open("ab", buffering=0)

    def append(self, data: Mapping[str, Any]) -> None:
        """On disk, but for the system's cache (unless ``sync``), when this returns."""
        content = as_line(data).encode("utf-8", errors="replace")
        start = self._file.seek(0, os.SEEK_END)
        try:
            while content:
                content = content[self._file.write(content) :]
            if self._sync:
                os.fsync(self._file.fileno())
        except OSError as error:
            # A full disk: leave whole lines only. The system's own error does not name the file.
            with suppress(OSError):
                self._file.truncate(start)
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    def rewrite(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Replace all lines at once."""
        replace_file(self.path, "".join(map(as_line, lines)))
        # Opened first: interrupted between the two, it must still be one that can be closed.
        before, self._file = self._file, self.path.open("ab", buffering=0)
        before.close()

    def close(self) -> None:
        with suppress(OSError):
            os.fsync(self._file.fileno())
        self._file.close()


def as_line(data: Mapping[str, Any]) -> str:
    return json.dumps(jsonable(data), ensure_ascii=False, allow_nan=False) + "\n"


def read_lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The place ("FILE, line N") and content of each whole line; none where there is no file. Raises InvalidInput."""
    if not file.exists():
        return
    with regular(file).open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                data = json.loads(line)
            except (ValueError, RecursionError):
                data = None
            place = f"{file}, line {number}"
            if not isinstance(data, dict):
                raise InvalidInput(
                    f"{place}: got {line[:40]!r}, expected a JSON object. Remove the line to go on with the run."
                )
            yield place, data


def read_config(path: Path) -> dict[str, Any]:
    """The settings that the work in a folder was made with, by dotted key. Raises InvalidInput where there is none."""
    file = path / CONFIG
    try:
        config = flatten(tomllib.loads(regular(file).read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        if not path.exists():
            raise InvalidInput(
                f"there is no folder {path}. {nearest(path)}Expected one written by `gnothi eval --out`."
            ) from None
        raise InvalidInput(
            f"{path} is not a run: it holds no {CONFIG}. Expected a folder written by `gnothi eval --out`."
        ) from None
    except TOML_ERRORS as error:
        raise InvalidInput(f"{file} cannot be read: {error}. Restore it, or choose another folder.") from error
    if (version := config.pop(FORMAT, None)) != VERSION:
        when = "a later" if isinstance(version, int) and version > VERSION else "an earlier"
        raise InvalidInput(
            f"{path} was written by {when} version of Gnothi: got format {version or 1}, expected {VERSION}. What it recorded "
            "may mean something else here: make it anew in another folder, or read it with the version that wrote it."
        )
    return config


def replace_file(path: Path, text: str) -> None:
    """Write a whole file so that at any moment the old or the new one is there."""
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("w", encoding="utf-8", errors="replace") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _make(path: Path, what: str) -> None:
    if path.exists() and not path.is_dir():
        raise InvalidSetting(f"<--out>: got the file {path}, expected a folder for the {what}.")
    path.mkdir(parents=True, exist_ok=True)
    others = sorted(item.name for item in path.iterdir() if not item.name.startswith("."))
    if others and CONFIG not in others:
        raise InvalidSetting(
            f"<--out>: the folder {path} holds other files ({others[0]}, ...); expected an empty one, a new one or a {what}."
        )


def _agree(path: Path, config: Mapping[str, Any], what: str, changed: Changed) -> None:
    text = to_toml(config)
    if not (path / CONFIG).exists():
        replace_file(path / CONFIG, to_toml({FORMAT: VERSION, **config}))
        return
    before, now = read_config(path), flatten(tomllib.loads(text))
    # Fingerprints last: where a setting differs, that is what to tell. What both sides have first: other methods bring other
    # settings with them.
    last = (_QUESTIONS, "dataset.questions")

    def place(key: str) -> tuple[bool, bool, bool, str]:
        return key.startswith(FINGERPRINTS), key in last, key not in before or key not in now, key

    differing = [key for key in sorted(before.keys() | now.keys(), key=place) if before.get(key) != now.get(key)]
    differences = changed(before) if any(key in _OF_QUESTIONS for key in differing) else ""
    renewed = set(_OF_QUESTIONS) if differences is None else set()
    # What lies elsewhere, and is the same.
    renewed |= {key for key in differing if now.get(FINGERPRINTS + key, "") == before.get(FINGERPRINTS + key)}
    for key in differing:
        if key.startswith(EXECUTION) or key in renewed:
            continue
        named = key.removeprefix(FINGERPRINTS)
        if key == _QUESTIONS:
            which = f": {differences}" if differences else f" (fingerprint {before.get(key)}, now {now.get(key)})"
            raise InvalidSetting(
                f"the questions of {now.get('dataset.name')} have changed since the {what} {path} was made{which}. Choose "
                "another <--out> to ask them, or put the data set back as it was; questions may be added at its end."
            )
        if named == key:
            like = [one for one in differing if place(one)[:3] == place(key)[:3]]
            others = [one for one in like if one not in renewed and not one.startswith(EXECUTION)][:_TOLD]
            pairs = [f"{one} = {before.get(one, '(unset)')!r}, got {now.get(one, '(unset)')!r}" for one in others]
            raise InvalidSetting(
                f"the {what} {path} was made with {'; '.join(pairs)}. Give the same settings to go on with it, or choose "
                "another <--out>."
            )
        if key in before and key in now and before.get(named) == now.get(named):
            raise InvalidSetting(
                f"the {resource(key)} {now.get(named)} has changed since the {what} {path} was made (fingerprint "
                f"{before[key]}, now {now[key]}): what is finished came from what it held before. Choose another <--out> to do "
                f"everything again, or put the {resource(key)} back as it was."
            )
    if kept := renewed & set(differing):
        rest = {key: value for key, value in before.items() if key not in kept}
        merged = rest | {key: now[key] for key in kept if key in now}
        replace_file(path / CONFIG, to_toml({FORMAT: VERSION, **merged}))


def resource(key: str) -> str:
    """What a fingerprint is of, in a word: ``model`` for ``fingerprints.model.name``, say."""
    if (code := key.partition(OBJECTS)[2]).startswith("methods."):
        return "code of the method"
    return ("code of the " if code else "") + key.removesuffix(".name").rpartition(".")[2]


def _cut_torn_line(path: Path) -> None:
    """What SIGKILL or a full disk left behind the last line end."""
    if not path.exists():
        return
    with regular(path).open("r+b") as file:
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
