"""Which model a spec names, told without loading it: what is calibrated on one model must not be used with another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gnothi.models import LAB, LAB_FOLDER, VLLM, is_remote

_ENDS = 1 << 20
"""Of large files, so many bytes at either end are read: enough to tell checkpoints of one model apart."""
_WEIGHTS = (".safetensors", ".bin", ".pt")


@dataclass(frozen=True, slots=True)
class Identity:
    """``fingerprint`` is empty where nothing but the name is known: a model behind an API, one that is not on this machine."""

    name: str
    fingerprint: str = ""

    def same(self, other: Identity) -> bool:
        """By fingerprint where both have one (a folder may have moved), else by name."""
        if self.fingerprint and other.fingerprint:
            return self.fingerprint == other.fingerprint
        return self.name.removeprefix(VLLM) == other.name.removeprefix(VLLM)


def identify(spec: str) -> Identity:
    """A folder by its configuration and weights, a model of the hub by the version that is cached. It downloads nothing."""
    if is_remote(spec):
        return Identity(spec)
    source = spec.removeprefix(VLLM)
    folder = LAB_FOLDER if source == LAB else Path(source).expanduser()
    if folder.is_dir():
        return Identity(
            spec, digest(file for file in folder.iterdir() if file.name == "config.json" or file.suffix in _WEIGHTS)
        )
    return Identity(spec, _cached_commit(source))


def digest(files: Iterable[Path]) -> str:
    """Of names, sizes and content, of large files the content at either end; times and places do not count."""
    found = hashlib.blake2b(digest_size=16)
    for path in sorted(files):
        size = path.stat().st_size
        found.update(f"{path.name}\0{size}\n".encode())
        with path.open("rb") as file:
            found.update(file.read(_ENDS))
            file.seek(max(file.tell(), size - _ENDS))
            found.update(file.read(_ENDS))
    return found.hexdigest()


def _cached_commit(source: str) -> str:
    try:
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(source, "config.json")
    except (ImportError, ValueError):  # not installed, or no hub id
        return ""
    return Path(found).parent.name if isinstance(found, str) else ""
