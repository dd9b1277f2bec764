"""Loading a model and its tokenizer from a folder or the hub."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gnothi.errors import MissingDependency, ModelUnavailable
from gnothi.models.settings import ModelSettings

DECLARATION = "gnothi.json"


@dataclass(frozen=True)
class Declaration:
    """What a model's folder says of it: the renderer it was trained with, thresholds calibrated on it by signal, and the only
    tasks it was taught (None: any that an instruction explains)."""

    renderer: str | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    tasks: frozenset[str] | None = None


def load(spec: str, name: str, settings: ModelSettings) -> tuple[Any, Any, Declaration]:
    """Model (in evaluation mode, on its device), tokenizer, and what its folder declares.

    Raises ModelUnavailable when there is no such model or it cannot be read, MissingDependency without torch or transformers.
    """
    try:
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

        from gnothi.models.engine.packed import pack
        from gnothi.models.engine.precision import automatic
    except ImportError as error:
        raise MissingDependency("torch and transformers", "local", f"running model {name!r}") from error
    source, folder = locate(spec, name)
    cuda = torch.cuda.is_available()
    if settings.device == "cuda" and not cuda:
        raise ModelUnavailable(f"cannot load model {name!r} on cuda: no CUDA device was found. Use <--set model.device=cpu>.")
    device = settings.device if settings.device != "auto" else "cuda" if cuda else "cpu"
    try:
        with no_progress_bars():
            tokenizer = AutoTokenizer.from_pretrained(source)
            config = AutoConfig.from_pretrained(source)
            several = bool(getattr(config, "is_encoder_decoder", False))
            precision = settings.dtype if settings.dtype != "auto" else automatic(config, device)
            kind: Any = AutoModelForSeq2SeqLM if several else AutoModelForCausalLM
            model: Any = kind.from_pretrained(source, dtype=getattr(torch, precision))
        model = model.to(device).eval()
        if settings.pack_weights and not several:
            pack(model)
    # The library raises many kinds of exceptions; to a user they all mean the same.
    except Exception as error:
        raise unloadable(name, error) from error
    return model, tokenizer, declared(folder)


def locate(spec: str, name: str) -> tuple[str, Path | None]:
    """What the library is to load, and its folder (None for a hub id). Raises ModelUnavailable when there is no such model."""
    folder = Path(spec).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelUnavailable(f"cannot load model {name!r}: the folder {spec} holds no config.json. {_EXPECTED}")
        return str(folder), folder
    if names_a_path(spec):
        raise ModelUnavailable(f"cannot load model {name!r}: got {spec}, which is no folder. {_EXPECTED}")
    _reach(spec, name)
    return spec, None


def names_a_path(spec: str) -> bool:
    """Whether it can be no hub id, or is the name of something here."""
    return Path(spec).expanduser().exists() or spec.startswith((".", "/", "~", "\\")) or spec.count("/") > 1


def unloadable(name: str, error: Exception) -> ModelUnavailable:
    """What a user is told of whatever a library raised."""
    return ModelUnavailable(f"cannot load model {name!r}: {reason(error)} {_EXPECTED}")


def reason(error: Exception) -> str:
    """Of a library's message the first line."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Loading shows a bar for weights, which would stand in the middle of a command's own output."""
    from transformers.utils import logging

    library: Any = logging
    enabled = logging.is_progress_bar_enabled()
    library.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            library.enable_progress_bar()


def _reach(spec: str, name: str) -> None:
    """Find out in one try whether the hub has the model, unless it is cached: the library would try for a minute."""
    try:
        from huggingface_hub import HfApi, try_to_load_from_cache
    except ImportError as error:
        raise MissingDependency("torch and transformers", "local", f"running model {name!r}") from error
    if isinstance(try_to_load_from_cache(spec, "config.json"), str):
        return
    try:
        HfApi().model_info(spec, timeout=10)
    except Exception as error:
        raise ModelUnavailable(f"cannot load model {name!r}: no answer from the hub about {spec!r}. {_EXPECTED}") from error


_EXPECTED = (
    "Expected 'lab', a folder saved by transformers (config.json, weights, tokenizer) or the id of a language model "
    "on the hub that is cached or can be downloaded."
)


def declared(folder: Path | None) -> Declaration:
    """What the folder's ``gnothi.json`` says; nothing where there is none."""
    if folder is None:
        return Declaration()
    path = folder / DECLARATION
    if not path.is_file():
        return Declaration()
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        renderer = given.get("renderer")
        thresholds = {str(signal): float(value) for signal, value in given.get("thresholds", {}).items()}
        tasks = frozenset(map(str, given["tasks"])) if given.get("tasks") is not None else None
    except (ValueError, TypeError, AttributeError) as error:
        expected = '{"renderer": "tagged", "thresholds": {"gram": -6.0}}'
        raise ModelUnavailable(f"cannot read {path}: expected JSON like {expected}, got: {error}.") from error
    return Declaration(renderer if renderer is None else str(renderer), thresholds, tasks)
