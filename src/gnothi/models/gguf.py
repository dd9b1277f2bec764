"""GGUF files. transformers reads one once; what it becomes is kept as a folder in the cache, which loads in a second."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gnothi.errors import MissingDependency, ModelUnavailable
from gnothi.libraries import reason
from gnothi.models.store import FOLDER_VARIABLE, folder
from gnothi.weights import file_digest

MODELS = "models"
NAME = "whole-2.txt"
"""Holds the name of the file that a kept folder was made of, nothing of it missing or left over; another one since folders
hold more."""
_MAGIC = b"GGUF"
_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_ENDS = ("eos", "eot", "eom")
"""What ends a text, a turn of a conversation, and a message of one: transformers reads the first alone."""
_LARGE = 2 * 10**9
"""Bytes of a file from which on weights are kept in 16 bits: in 32 they would fit few disks and memories."""
_EXPECTED = "Expected a whole GGUF file of a language model, or a folder that holds one."

log = logging.getLogger("gnothi.opening")
"""What is being done while a person waits; how far it is, as debugging."""


def check(file: Path, name: str) -> None:
    """Raise ModelUnavailable for what is no GGUF file, or only a part of one."""
    try:
        with file.open("rb") as opened:
            magic = opened.read(len(_MAGIC))
    except OSError as error:
        raise ModelUnavailable(f"cannot load model {name!r}: {file} cannot be read ({error.strerror}). {_EXPECTED}") from None
    if magic != _MAGIC:
        raise ModelUnavailable(
            f"cannot load model {name!r}: {file} is no GGUF file (it does not begin with 'GGUF'). {_EXPECTED}"
        )
    if _PART.search(file.name):
        raise ModelUnavailable(
            f"cannot load model {name!r}: {file.name} is one part of several. Join them first, with llama.cpp's "
            "`llama-gguf-split --merge`."
        )


def unpacked(file: Path, name: str) -> Path:
    """The folder in the cache that holds the unpacked file; made now where there is none. Of several processes one makes it.

    Raises ModelUnavailable for a file that transformers cannot read, or where the cache has no room, MissingDependency."""
    from filelock import FileLock

    check(file, name)
    for package in ("gguf", "accelerate"):
        if find_spec(package) is None:
            raise MissingDependency(package, "local", f"reading the GGUF file {file.name}")
    place = folder() / MODELS / file_digest(file)
    if _whole(place):
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(place.with_suffix(".lock")):
            if not _whole(place):  # another process may have made it meanwhile
                _make(file, name, place)
    except OSError as error:
        raise ModelUnavailable(
            f"cannot load model {name!r}: cannot store the unpacked {file.name} in {place.parent} "
            f"({error.strerror or error}). Name another folder with the environment variable {FOLDER_VARIABLE}."
        ) from error
    return place


def _whole(place: Path) -> bool:
    return (place / NAME).is_file()


def _make(file: Path, name: str, place: Path) -> None:
    """Beside its place, then moved there: what is in its place is whole."""
    partial = place.with_suffix(".partial")
    for old in (partial, place):  # of a process that was killed
        shutil.rmtree(old, ignore_errors=True)
    try:
        _convert(file, name, partial)
        (partial / NAME).write_text(file.name, encoding="utf-8")
        partial.replace(place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _convert(file: Path, name: str, out: Path) -> None:
    import torch
    import transformers
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from gnothi.models.engine import checkpoint, overlooked

    log.info("reading %s (%s) for the first time, which takes a while ...", file.name, _size(file.stat().st_size))
    source: dict[str, Any] = {"gguf_file": file.name, "trust_remote_code": False}
    # Versions of transformers without this class always unpack the weights.
    unpack = {"quantization_config": transformers.GgufConfig(dequantize=True)} if hasattr(transformers, "GgufConfig") else {}
    precision = torch.bfloat16 if file.stat().st_size > _LARGE else torch.float32
    try:
        tokenizer = AutoTokenizer.from_pretrained(file.parent, **source)
        with contextlib.redirect_stderr(_Bars(f"reading {file.name}")):
            arguments = {"dtype": precision, **source, **unpack}
            model, weights = checkpoint.read(AutoModelForCausalLM, str(file.parent), arguments)
            weights.check(model, name)
            overlooked.settle(file, model, name)
    except ModelUnavailable:
        raise
    # The libraries raise many kinds of exceptions; to a user they all mean the same.
    except Exception as error:
        raise ModelUnavailable(f"cannot load model {name!r}: {_diagnosis(file, error)} {_EXPECTED}") from error
    needed, free = model.num_parameters() * precision.itemsize, shutil.disk_usage(out.parent).free
    if needed > free:
        raise ModelUnavailable(
            f"cannot load model {name!r}: {file.name} takes {_size(needed)} when it is unpacked, and {out.parent} has "
            f"{_size(free)} free. Name a folder with more room with the environment variable {FOLDER_VARIABLE}."
        )
    model.generation_config.eos_token_id = _ends(file) or model.generation_config.eos_token_id
    log.info("writing what %s holds to %s (%s) ...", file.name, out.parent, _size(needed))
    try:
        with contextlib.redirect_stderr(_Bars(f"writing {_size(needed)}")):
            model.save_pretrained(out)
    except SafetensorError as error:  # a full disk, say
        raise OSError(str(error)) from error
    tokenizer.save_pretrained(out)


def _ends(file: Path) -> list[int]:
    from gguf import GGUFReader

    fields = (GGUFReader(file).get_field(f"tokenizer.ggml.{end}_token_id") for end in _ENDS)
    return list(dict.fromkeys(int(field.contents()) for field in fields if field is not None))


class _Bars(io.StringIO):
    """What libraries write of their progress, told on the log in percent."""

    def __init__(self, doing: str) -> None:
        super().__init__()
        self._doing = doing

    def write(self, text: str) -> int:
        if found := re.search(r"(\d+)%", text):
            log.debug("%s: %s %%", self._doing, found[1])
        return len(text)


def _diagnosis(file: Path, error: Exception) -> str:
    """Why a file was not read: it is damaged, or of a kind that transformers does not know."""
    from gguf import GGUFReader

    try:
        reader: Any = GGUFReader(file)
        architecture = reader.fields["general.architecture"].contents()
        tensors = ", ".join(sorted({one.tensor_type.name for one in reader.tensors}))
    except Exception:  # noqa: BLE001  whatever it trips over, the file is not as the format has it
        return f"{file.name} is damaged or not complete. Copy or download it again."
    return (
        f"transformers cannot read {file.name}, a model of the architecture {architecture!r} with tensors of the kinds "
        f"{tensors}: {reason(error).rstrip('.')}."
    )


def _size(number: float) -> str:
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.0f} MB"


# --- what is kept --------------------------------------------------------------------------------------------------------


def listed() -> dict[str, int]:
    """The files that were read, each with the bytes that are kept of it."""
    names = sorted((folder() / MODELS).glob(f"*/{NAME}"))
    return {name.read_text(encoding="utf-8"): _bytes(name.parent) for name in names}


def forget() -> None:
    """All that is kept, but for what another process is making."""
    from filelock import FileLock, Timeout

    for lock in sorted((folder() / MODELS).glob("*.lock")):
        with contextlib.suppress(Timeout, OSError), FileLock(lock, timeout=0):
            for leftover in (lock.with_suffix(""), lock.with_suffix(".partial")):
                shutil.rmtree(leftover, ignore_errors=True)


def _bytes(place: Path) -> int:
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
