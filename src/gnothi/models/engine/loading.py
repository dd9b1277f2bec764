"""Loading a model and its tokenizer from a folder or the hub."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gnothi.errors import GnothiError, InvalidSetting, MissingDependency, ModelUnavailable
from gnothi.libraries import listed, reason, sleeping_threads
from gnothi.models.generation_config import alters
from gnothi.models.places import EXPECTED, Place, locate
from gnothi.models.scheme import LABORATORYS
from gnothi.models.settings import ModelSettings
from gnothi.weights import DECLARATION


def load_arguments(settings: ModelSettings, name: str, cuda: bool) -> tuple[str, dict[str, Any]]:
    """The device, and what transformers' ``from_pretrained`` is told; it puts the model in its place itself where a
    ``device_map`` is among it. ``cuda``: whether there is such a device.

    Raises ModelUnavailable for a device that is not there, InvalidSetting for settings that need one, MissingDependency."""
    if settings.device == "cuda" and not cuda:
        raise ModelUnavailable(f"cannot load model {name!r} on cuda: no CUDA device was found. Use <--set model.device=cpu>.")
    device = settings.device if settings.device != "auto" else "cuda" if cuda else "cpu"
    precision = settings.dtype if settings.dtype != "auto" else "bfloat16" if device == "cuda" else "float32"
    arguments: dict[str, Any] = {"dtype": precision, "trust_remote_code": False}
    if settings.device_map != "off":
        _check("device_map", settings.device_map, device, "accelerate", "local")
        arguments["device_map"] = settings.device_map
    if settings.quantize != "off":
        _check("quantize", settings.quantize, device, "bitsandbytes", "quantized")
        arguments.setdefault("device_map", {"": int(os.environ.get("LOCAL_RANK", "0"))})  # of several that train together
        arguments["quantization_config"] = {"quant_method": "bitsandbytes", f"load_in_{settings.quantize}": True} | (
            {"bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": precision} if settings.quantize == "4bit" else {}
        )
    return device, arguments


def _check(key: str, value: str, device: str, package: str, extra: str) -> None:
    if device != "cuda":
        raise InvalidSetting(
            f"setting 'model.{key}': got {value!r} for a model on the CPU, expected 'off': it needs a CUDA device."
        )
    if find_spec(package) is None:
        raise MissingDependency(package, extra, f"setting 'model.{key}' = {value!r}")


GENERATION = "generation_config.json"
_MOST_LAYERS = 1_000
log = logging.getLogger("gnothi.opening")


@dataclass(frozen=True)
class Declaration:
    """What a model's folder says of it: the renderer it was trained with, thresholds calibrated on it by signal, and the only
    tasks it was taught (None: any that an instruction explains), what ``gnothi train`` made of it, the set of tasks that it
    was shown in that training, and the world of the laboratory it is of."""

    renderer: str | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    tasks: frozenset[str] | None = None
    trained: str = ""
    demonstrations: str = "default"
    world: Mapping[str, Any] | None = None


def load(spec: str, name: str, settings: ModelSettings) -> tuple[Any, Any, Declaration]:
    """Model (in evaluation mode, on its device), tokenizer, and what its folder declares.

    Raises ModelUnavailable when there is no such model or it cannot be read, MissingDependency without torch or transformers.
    """
    with suppress(ImportError), sleeping_threads():
        import torch
    try:
        import torch
        from transformers import AutoConfig, AutoTokenizer

        from gnothi.models.engine import adapters, checkpoint
        from gnothi.models.engine.multimodal import is_multimodal, keep_text, template
        from gnothi.models.engine.packed import pack
        from gnothi.models.engine.precision import automatic, loss
    except ImportError as error:
        raise MissingDependency(error.name or "transformers", "local", f"running model {name!r}") from error
    place = locate(spec, name)
    device, arguments = load_arguments(settings, name, torch.cuda.is_available())
    try:
        with no_progress_bars():
            if not (place.folder or place.gguf) and (found := adapters.on_the_hub(place.source)):
                place = locate(str(found), name)
            source = (locate(place.base, name) if place.base else place).ready(name)
            tokenizer_source = place.source if place.base and adapters.has_tokenizer(Path(place.source)) else source
            tokenizer = AutoTokenizer.from_pretrained(tokenizer_source, trust_remote_code=False)
            if not isinstance(tokenizer.model_max_length, int | float):
                raise TypeError(f"model_max_length of its tokenizer is {tokenizer.model_max_length!r:.40}, no number.")
            config = AutoConfig.from_pretrained(source, trust_remote_code=False)
            layers = getattr(config.get_text_config(), "num_hidden_layers", 1)
            if not (isinstance(layers, int) and 1 <= layers <= _MOST_LAYERS):  # the library would make them, or take none
                raise TypeError(f"its config.json names {layers!r:.40} layers, expected 1 to {_MOST_LAYERS:,}.")
            if is_multimodal(config) and not tokenizer.chat_template:
                tokenizer.chat_template = template(source)
            if settings.dtype == "auto":
                arguments["dtype"] = automatic(config, device)
            elif settings.dtype == "bfloat16" and (times := loss(config, device)):
                log.warning(
                    "%s in bfloat16 takes about %.0f times as long as in float32 on this processor, which has no instructions "
                    "for it. Unless memory is short, use model.dtype=float32, and a calibration made with it.",
                    name,
                    times,
                )
            model, weights = checkpoint.read(auto_class(config), source, arguments)
            model = (model if "device_map" in arguments else model.to(device)).eval()
            if place.base:
                model = adapters.applied(model, Path(place.source), name)
            if is_multimodal(config) and (beside := keep_text(model, name)):
                log.info("%s: for text alone, so without %s", name, ", ".join(beside))
            if unused := weights.check(model, name, place.base):
                log.info("%s: its checkpoint also holds %s, which text needs not", name, listed(unused))
            warn_of_habits(name, generation_config(source, here=True) or getattr(model, "generation_config", None))
        if settings.pack_weights and not getattr(config, "is_encoder_decoder", False):
            pack(model)
    except GnothiError:
        raise
    # The library raises many kinds of exceptions; to a user they all mean the same.
    except Exception as error:
        raise unloadable(name, error, place) from error
    return model, tokenizer, declared(place.folder)


def load_to_answer(spec: str, name: str, settings: ModelSettings) -> tuple[Any, Any, Declaration]:
    """As ``load``, where the model will only answer: one of the laboratory's then needs no transformers."""
    if name in LABORATORYS and (own := _laboratorys(Path(spec), settings)):
        return *own, declared(Path(spec))
    return load(spec, name, settings)


def _laboratorys(folder: Path, settings: ModelSettings) -> tuple[Any, Any] | None:
    """One of the laboratory's models without transformers; None where it is to be run otherwise than usual."""
    try:
        with sleeping_threads():
            import torch

        from gnothi.models.engine import llama
    except ImportError:
        return None  # which library is missing is told below
    usual = settings.quantize == settings.device_map == "off" and settings.attention in ("auto", "forked")
    device, _ = load_arguments(settings, folder.name, torch.cuda.is_available()) if usual else ("", {})
    if device != "cpu" or settings.dtype not in ("auto", "float32"):
        return None
    model, tokenizer = llama.load(folder)
    if settings.pack_weights:
        from gnothi.models.engine.packed import pack

        pack(model)
    return model, tokenizer


def auto_class(config: Any) -> Any:
    """What transformers loads or makes a model of this configuration with."""
    from transformers import AutoModelForCausalLM, AutoModelForMultimodalLM, AutoModelForSeq2SeqLM

    from gnothi.models.engine.multimodal import is_multimodal

    if getattr(config, "is_encoder_decoder", False):
        return AutoModelForSeq2SeqLM
    return AutoModelForMultimodalLM if is_multimodal(config) else AutoModelForCausalLM


def unloadable(name: str, error: Exception, place: Place) -> ModelUnavailable:
    """The error for whatever a library raised."""
    from gnothi.models.engine.checkpoint import damaged

    again = " `gnothi cache --clear` has the GGUF file read again." if place.gguf else ""
    cause = reason(error).rstrip(".")
    if place.folder and (file := damaged(place.folder)):
        cause = f"{file} is damaged or not complete ({cause}). Copy or download it again"
    return ModelUnavailable(f"cannot load model {name!r}: {cause}.{again} {EXPECTED}")


def generation_config(source: str, *, here: bool = False) -> Any:
    """A model's generation settings, None where it has no file of them; ``here``: no connection is tried. Raises OSError for
    one that cannot be read, in whose place the library would put settings of its own."""
    from huggingface_hub import try_to_load_from_cache
    from transformers import GenerationConfig

    try:
        return GenerationConfig.from_pretrained(source, local_files_only=here)
    except OSError:
        folder = Path(source)
        file = folder / GENERATION if folder.is_dir() else try_to_load_from_cache(source, GENERATION)
        if isinstance(file, str | Path) and Path(file).is_file():
            raise
        return None


def warn_of_habits(name: str, config: Any) -> None:
    """Say once what a model's generation settings ask for that is not followed."""
    if changes := alters(config):
        log.warning(
            "%s: its generation_config asks for %s, which is not followed: answers and log-probabilities are those of the "
            "model itself. They may differ from another program's.",
            name,
            changes,
        )


def weights_of(config: Any) -> int | None:
    """How many weights a model of this configuration has, without making it; None where transformers cannot tell."""
    import torch

    try:
        with torch.device("meta"):
            model = auto_class(config).from_config(config)
    except Exception:  # noqa: BLE001 - the libraries raise many kinds, and a model runs without its size
        return None
    return int(model.num_parameters())


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


def declared(folder: Path | None) -> Declaration:
    """What the folder's ``gnothi.json`` says; nothing where there is none."""
    if folder is None:
        return Declaration()
    path = folder / DECLARATION
    if not path.is_file():
        return Declaration()
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        renderer = data.get("renderer")
        thresholds = {str(signal): float(value) for signal, value in data.get("thresholds", {}).items()}
        tasks = frozenset(map(str, data["tasks"])) if data.get("tasks") is not None else None
        demonstrations = str(data.get("demonstrations", "default"))
    except (ValueError, TypeError, AttributeError) as error:
        expected = '{"renderer": "tagged", "thresholds": {"gram": -6.0}}'
        raise ModelUnavailable(f"cannot read {path}: expected JSON like {expected}, got: {error}.") from error
    demonstrations = str(folder / demonstrations) if (folder / demonstrations).is_file() else demonstrations
    renderer = renderer if renderer is None else str(renderer)
    return Declaration(renderer, thresholds, tasks, str(data.get("trained", "")), demonstrations, data.get("world"))
