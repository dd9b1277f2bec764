"""Adapters that PEFT has saved: a folder with the change of another model, its base, which is read first."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import Tensor

from gnothi.errors import MissingDependency, ModelUnavailable
from gnothi.libraries import listed
from gnothi.models.engine.unchanged import ReferenceLogits
from gnothi.weights import ADAPTER

_FILES = ("adapter_*", "tokenizer*", "*.model", "vocab.*", "merges.txt", "*_tokens*.json", "chat_template*", "gnothi.json")


def on_the_hub(hub_id: str) -> Path | None:
    """The folder in the hub's cache of what is an adapter there, downloaded where it has to be."""
    from huggingface_hub import snapshot_download, try_to_load_from_cache
    from transformers.utils import hub

    library: Any = hub
    cached = [isinstance(try_to_load_from_cache(hub_id, name), str) for name in (ADAPTER, "config.json")]
    # A model in the cache is no adapter. Whatever is not in the cache is looked up on the hub.
    if cached == [False, True]:
        return None
    if not cached[0] and library.cached_file(hub_id, ADAPTER, _raise_exceptions_for_missing_entries=False) is None:
        return None
    return Path(snapshot_download(hub_id, allow_patterns=list(_FILES)))


def has_tokenizer(folder: Path) -> bool:
    return any(folder.glob("tokenizer*")) or any(folder.glob("*.model"))


def applied(model: Any, folder: Path, name: str) -> Any:
    """``model`` with the adapter in ``folder``, merged into its weights where the logits stay the same.

    Raises MissingDependency without PEFT, ModelUnavailable for an adapter of another kind of model or one that is not whole."""
    try:
        from peft import PeftConfig, PeftModel, load_peft_weights
    except ImportError as error:
        raise MissingDependency("peft", "training", f"the adapter {name!r}") from error
    config = PeftConfig.from_pretrained(str(folder))
    if config.is_prompt_learning or config.is_adaption_prompt:
        raise ModelUnavailable(
            f"cannot load model {name!r}: got an adapter of the kind {config.peft_type.value}, which puts tokens of its own "
            "before every text. Expected one that changes a model's weights, as LoRA does."
        )
    if getattr(config, "alora_invocation_tokens", None):
        raise ModelUnavailable(
            f"cannot load model {name!r}: got an adapter that changes the model only behind certain tokens of a text (an "
            "activated LoRA). Expected one that changes it for whole texts, as LoRA without alora_invocation_tokens does."
        )
    _make_room(model, load_peft_weights(str(folder), device="cpu"), name)
    config.inference_mode = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is wrong is found out below
        changed: Any = PeftModel(model, config)
        loaded = changed.load_adapter(str(folder), "default", torch_device=str(model.device))
        missing = _names(key for key in loaded.missing_keys if "vblora_vector_bank" not in key)  # one for all layers
        unexpected = _names(loaded.unexpected_keys)
        if missing or unexpected:
            raise ModelUnavailable(
                f"cannot load model {name!r}: the adapter and its base {model.config.name_or_path} do not belong together: "
                + "; ".join(
                    [f"the adapter lacks {listed(missing)}"] * bool(missing)
                    + [f"the base has no place for {listed(unexpected)}"] * bool(unexpected)
                )
                + f". Name the base that it was trained on as base_model_name_or_path in {folder / ADAPTER}, or copy it again."
            )
        return _merged(changed.eval())


def _names(keys: Iterable[str]) -> list[str]:
    """As they are in the adapter's file: without the name that PEFT gives it, as some of its versions do, some do not."""
    return sorted(key.replace(".default.", ".") for key in keys)


def _make_room(model: Any, weights: dict[str, Tensor], name: str) -> None:
    """Tokens that were added to the vocabulary: their rows come with the adapter."""
    tables = {id(one.weight): one for one in (model.get_input_embeddings(), model.get_output_embeddings()) if one is not None}
    paths = [path for path, one in model.named_modules() if any(one is table for table in tables.values())]
    rows = [len(weight) for key, weight in weights.items() if key.endswith(tuple(f"{path}.weight" for path in paths))]
    known = len(model.get_input_embeddings().weight)
    if not rows or set(rows) == {known}:
        return
    if len(set(rows)) > 1 or len(rows) < len(tables):
        raise ModelUnavailable(
            f"cannot load model {name!r}: the adapter adds tokens ({max(rows)} instead of {known}) without what the model "
            "knows of them. Expected the embeddings beside the adapter's own weights: save it again with "
            "save_embedding_layers=True."
        )
    model.resize_token_embeddings(rows[0], mean_resizing=False)


def _merged(changed: Any) -> Any:
    """Apart where weights are quantised, which would round the change away, or where parts share weights and the change is
    of one of them alone."""
    if getattr(changed.get_base_model(), "is_quantized", False):
        return changed.get_base_model()
    reference = ReferenceLogits(changed.get_base_model())
    changed.merge_adapter()
    if reference.same():
        return changed.merge_and_unload()
    changed.unmerge_adapter()
    return changed.get_base_model()
