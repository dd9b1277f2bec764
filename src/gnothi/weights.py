"""What tells the content of a model's folder, or of one on the hub, from another, and what libraries say of it: nothing is
loaded for it."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

DECLARATION = "gnothi.json"
"""What a model's folder may say of it: see the page on models."""
ADAPTER = "adapter_config.json"
"""What a folder holds that PEFT has saved."""
WHOLE = ("model*.safetensors", "pytorch_model*.bin")
"""The weights of a whole model."""
_ENDS = 1 << 20
"""Of large files, so many bytes at either end are read: enough to tell checkpoints of one model apart."""
_PIECES = 16
_SHOWN = 3
"""Of many names."""
_MISSING = re.compile(r"^(\S.*?) +\| MIS(?:SING|MATCH)", re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_SAID = 300
"""Characters of a line of a library's message."""
_FILES = (
    "*.safetensors", "*.bin", "*.pt", "config.json", "generation_config.json", ADAPTER,
    "tokenizer*", "*.model", "vocab.*", "merges.txt", "added_tokens.json", "special_tokens_map.json", "chat_template*",
)  # fmt: skip
"""What a model's answers depend on. Not what ``gnothi.json`` declares: a threshold noted there leaves the model what it is."""


def digest(files: Iterable[Path]) -> str:
    """Of names, sizes and content, of large files the content at either end; times and places do not count, nor what is not
    there."""
    found = hashlib.blake2b(digest_size=16)
    for path in sorted(file for file in files if file.is_file()):
        size = path.stat().st_size
        found.update(f"{path.name}\0{size}\n".encode())
        with path.open("rb") as file:
            found.update(file.read(_ENDS))
            file.seek(max(file.tell(), size - _ENDS))
            found.update(file.read(_ENDS))
    return found.hexdigest()


def file_digest(file: Path) -> str:
    """Of one file's size and content, its name left out; of a large one, sixteen pieces spread over it."""
    size = file.stat().st_size
    found = hashlib.blake2b(f"{size}\n".encode(), digest_size=16)
    with file.open("rb") as opened:
        for piece in range(_PIECES):
            opened.seek(max(0, size - _ENDS) * piece // (_PIECES - 1))
            found.update(opened.read(_ENDS))
    return found.hexdigest()


def files_of(folder: Path) -> list[Path]:
    """Configuration, weights and tokenizer."""
    return [path for path in folder.iterdir() if any(path.match(pattern) for pattern in _FILES)]


def version_of(hub_id: str) -> str:
    """The version of it that is cached; empty where none is. It downloads nothing."""
    try:
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(hub_id, "config.json") or try_to_load_from_cache(hub_id, ADAPTER)
    except (ImportError, ValueError):  # not installed, or no hub id
        return ""
    return Path(found).parent.name if isinstance(found, str) else ""


def reason(error: Exception) -> str:
    """Why a library could not load a model: the first and the last line of its message, each of bounded length. The first often
    says no more than that something failed, and the last what it was."""
    if "trust_remote_code" in str(error):
        return (
            "it comes with Python code of its own (auto_map in its config.json), which is never run: trust_remote_code is off."
        )
    plain = _COLOURS.sub("", str(error))
    lines = [" ".join(line.split()) for line in plain.splitlines() if any(map(str.isalnum, line))]
    said = [line if len(line) <= _SAID else f"{line[: _SAID // 2]} ... {line[-_SAID // 2 :]}" for line in lines]
    return " ".join(dict.fromkeys((*said[:1], *said[-1:]))) or type(error).__name__


@contextmanager
def reports() -> Iterator[list[str]]:
    """While transformers loads a model: its reports of weights that it did not find, instead of printing them."""
    told: list[str] = []
    log = logging.getLogger("transformers.modeling_utils")
    level, usual = log.level, log.getEffectiveLevel()

    def keep(record: logging.LogRecord) -> bool:
        if report := "LOAD REPORT" in record.getMessage():
            told.append(record.getMessage())
        return not report and record.levelno >= usual

    log.setLevel(logging.INFO)  # whatever a program has told the library to say
    log.addFilter(keep)
    try:
        yield told
    finally:
        log.removeFilter(keep)
        log.setLevel(level)


def check_found(told: Iterable[str], unneeded: str) -> None:
    """Raise ValueError for weights that ``reports`` name as missing, or in another shape, but for those whose names hold
    ``unneeded`` (a regular expression): they would be random numbers."""
    names = sorted(name for report in told for name in _MISSING.findall(report) if not re.search(unneeded, name))
    if names:
        raise ValueError(f"its files lack {listed(names)}, in whose place the library would put random numbers.")


def listed(names: list[str]) -> str:
    """The first of many, and how many more there are."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
