"""Which model a spec names, told without loading it: what is calibrated on one model must not be used with another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gnothi.models.engine.loading import DECLARATION
from gnothi.models.registry import scheme_of
from gnothi.models.scheme import LAB, LAB_FOLDER

_FOLDERS = ("transformers", "vllm")
"""The schemes of models that are folders, or of the hub: one is the same model under either."""
_ENDS = 1 << 20
"""Of large files, so many bytes at either end are read: enough to tell checkpoints of one model apart."""
_FILES = (
    "*.safetensors", "*.bin", "*.pt", "config.json", "generation_config.json",
    "tokenizer*", "*.model", "vocab.*", "merges.txt", "added_tokens.json", "special_tokens_map.json", "chat_template*",
)  # fmt: skip
"""What a model's answers depend on. Not what ``gnothi.json`` declares: a threshold noted there leaves the model what it is."""


@dataclass(frozen=True, slots=True)
class Identity:
    """``fingerprint`` is empty where nothing but the name is known: a model behind an API, one that is not on this machine."""

    name: str
    fingerprint: str = ""

    def same(self, other: Identity) -> bool:
        """By fingerprint where both have one (a folder may have moved), else by name."""
        if self.fingerprint and other.fingerprint:
            return self.fingerprint == other.fingerprint
        return _unprefixed(self.name) == _unprefixed(other.name)


def identify(spec: str) -> Identity:
    """A folder by its configuration, weights and tokenizer, a model of the hub by the version that is cached. It downloads
    nothing."""
    folder = _folder(spec)
    return Identity(spec, digest(_files(folder)) if folder and folder.is_dir() else _commit(spec))


def content(spec: str) -> str:
    """What changes with anything that decides what a model answers and how it is used, ``gnothi.json`` included; empty where
    nothing but the name is known."""
    folder = _folder(spec)
    return digest([*_files(folder), folder / DECLARATION]) if folder and folder.is_dir() else _commit(spec)


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


def _folder(spec: str) -> Path | None:
    """None for a model that is no folder and of no hub."""
    name, _, source = scheme_of(spec)
    if name not in _FOLDERS:
        return None
    return LAB_FOLDER if source == LAB else Path(source).expanduser()


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if any(path.match(pattern) for pattern in _FILES)]


def _commit(spec: str) -> str:
    name, scheme, source = scheme_of(spec)
    if name not in _FOLDERS:
        return scheme.fingerprint(source)
    try:
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(source, "config.json")
    except (ImportError, ValueError):  # not installed, or no hub id
        return ""
    return Path(found).parent.name if isinstance(found, str) else ""


def _unprefixed(name: str) -> str:
    """A record may name a model whose scheme this installation lacks."""
    scheme, colon, argument = name.partition(":")
    return argument if colon and scheme in _FOLDERS else name
