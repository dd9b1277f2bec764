"""The text part of models that also see or hear: the whole model is loaded, and what no text passes through is let go."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from gnothi.errors import ModelUnavailable
from gnothi.models.engine.unchanged import TOKENS, ReferenceLogits


def is_multimodal(config: Any) -> bool:
    """Whether a model of this configuration replies to text and to something else."""
    if getattr(config, "text_alone", False):
        return False
    from transformers.models.auto import modeling_auto

    known: Any = modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING
    return not getattr(config, "is_encoder_decoder", False) and type(config) in known


def template(source: str) -> str | None:
    """The chat template of a folder or hub id whose tokenizer has none, where it lies beside it, as once with what prepares
    images."""
    from transformers.utils import hub

    library: Any = hub
    file = library.cached_file(source, "chat_template.json", _raise_exceptions_for_missing_entries=False)
    text = json.loads(Path(file).read_text(encoding="utf-8"))["chat_template"] if file else None
    return None if text is None else str(text)


def keep_text(model: Any, name: str) -> list[str]:
    """Take the parts out of ``model`` that a text does not pass through, and return their names; its logits stay the same.

    Raises ModelUnavailable for a model that needs more than text, or in which a word depends on those behind it."""
    ran: set[nn.Module] = set()
    hooks = [one.register_forward_pre_hook(lambda module, _: ran.add(module)) for one in model.modules()]
    try:
        reference = ReferenceLogits(model)
    except Exception as error:
        raise ModelUnavailable(
            f"cannot load model {name!r}: a {type(model).__name__} does not reply to text alone ({type(error).__name__}: "
            f"{error!s:.200}). Expected a language model, or one that also sees or hears."
        ) from error
    finally:
        for hook in hooks:
            hook.remove()
    if not reference.same(tokens=TOKENS // 2):
        raise ModelUnavailable(
            f"cannot load model {name!r}: a {type(model).__name__} reads a text in both directions, so a word has "
            "no probability given only the words before it. Expected a language model that reads from left to right."
        )
    beside = dict(_unused(model, ran))
    _put(model, {path: _Absent(model) for path in beside})
    try:
        same = reference.same()
    except Exception:  # noqa: BLE001 - such a model keeps its parts
        same = False
    if not same:
        _put(model, beside)
        return []
    return sorted(beside)


class _Absent(nn.Module):
    """Stands where a part was: some models ask theirs where and in which precision it is, whatever they read."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.device, self.dtype = model.device, model.dtype


def _put(model: nn.Module, parts: Mapping[str, nn.Module]) -> None:
    for path, part in parts.items():
        parent, _, own = path.rpartition(".")
        setattr(model.get_submodule(parent), own, part)


def _unused(module: Any, ran: set[nn.Module], before: str = "") -> Iterator[tuple[str, nn.Module]]:
    """The outermost parts that nothing of a text passed through, with their paths; none within the language model, where an
    expert may have rested."""
    language = module.get_decoder() if hasattr(module, "get_decoder") else None
    if language is module:
        return
    for own, child in module.named_children():
        path = f"{before}{own}"
        if not ran.intersection(child.modules()):
            yield path, child
        elif child is not language:
            yield from _unused(child, ran, f"{path}.")
