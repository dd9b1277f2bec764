"""What tells the content of a model's folder, or of one on the hub, from another: nothing is loaded for it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
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
_FILES = (
    "*.safetensors", "*.bin", "*.pt", "config.json", "generation_config.json", ADAPTER,
    "tokenizer*", "*.model", "vocab.*", "merges.txt", "added_tokens.json", "special_tokens_map.json", "chat_template*",
)  # fmt: skip
"""What a model's answers depend on. Not what ``gnothi.json`` declares: a threshold noted there leaves the model what it is."""


def digest(files: Iterable[Path]) -> str:
    """Of names, sizes and content, of large files the content at either end; times and places do not count, nor what is not
    there."""
    hashed = hashlib.blake2b(digest_size=16)
    for path in sorted(file for file in files if file.is_file()):
        size = path.stat().st_size
        hashed.update(f"{path.name}\0{size}\n".encode())
        with path.open("rb") as file:
            hashed.update(file.read(_ENDS))
            file.seek(max(file.tell(), size - _ENDS))
            hashed.update(file.read(_ENDS))
    return hashed.hexdigest()


def file_digest(file: Path) -> str:
    """Of one file's size and content, its name left out; of a large one, sixteen pieces spread over it."""
    size = file.stat().st_size
    hashed = hashlib.blake2b(f"{size}\n".encode(), digest_size=16)
    with file.open("rb") as opened:
        for piece in range(_PIECES):
            opened.seek(max(0, size - _ENDS) * piece // (_PIECES - 1))
            hashed.update(opened.read(_ENDS))
    return hashed.hexdigest()


def files_of(folder: Path) -> list[Path]:
    """Configuration, weights and tokenizer."""
    return [path for path in folder.iterdir() if any(path.match(pattern) for pattern in _FILES)]


def version_of(hub_id: str) -> str:
    """The version of it that is cached; empty where none is. It downloads nothing."""
    try:
        from huggingface_hub import try_to_load_from_cache

        file = try_to_load_from_cache(hub_id, "config.json") or try_to_load_from_cache(hub_id, ADAPTER)
    except (ImportError, ValueError):  # not installed, or no hub id
        return ""
    return Path(file).parent.name if isinstance(file, str) else ""
