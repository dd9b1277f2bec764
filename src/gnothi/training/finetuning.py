"""What trainings of a model's weights share: adapter, checkpoints, early stopping, the folder of the model they end with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gnothi.errors import MissingDependency
from gnothi.models.engine.loading import DECLARATION, no_progress_bars
from gnothi.models.settings import ModelSettings
from gnothi.runs.journal import replace_file

METRICS, HEADER, CHECKPOINTS = "metrics.jsonl", "training.json", "checkpoints"
Adapter = Literal["lora", "full"]
Kind = Literal["CAUSAL_LM", "SEQ_2_SEQ_LM"]
"""PEFT's names of what a model does."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What is trained: the model as the user names it, what the library is to load, and how."""

    name: str
    source: str
    settings: ModelSettings

    @property
    def to_train(self) -> ModelSettings:
        """The settings of its weights and format; how it would decode does not matter."""
        given = self.settings
        return ModelSettings(device=given.device, dtype=given.dtype, renderer=given.renderer, pack_weights=False)


def require_libraries(what: str) -> None:
    """Raise MissingDependency without the libraries of the extra ``training``; ``what`` needs them."""
    try:
        import accelerate  # noqa: F401
        import peft  # noqa: F401
        import trl  # noqa: F401
    except ImportError as error:
        raise MissingDependency(error.name or "trl", "training", what) from error


def adapted(base: Any, adapter: Adapter, rank: int, seed: int, kind: Kind = "CAUSAL_LM") -> Any:
    """The model with what is to be trained of it: a new adapter on every linear layer, its scale twice the rank, or all."""
    from transformers import set_seed

    set_seed(seed)
    if adapter == "full":
        return base
    from peft import LoraConfig, get_peft_model

    return get_peft_model(base, LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type=kind))


def restore(model: Any, folder: Path, adapter: Adapter) -> None:
    """Take the trained weights saved in ``folder``."""
    if adapter == "lora":
        from peft import load_peft_weights, set_peft_model_state_dict

        set_peft_model_state_dict(model, load_peft_weights(str(folder), device=str(model.device)))
    else:
        with no_progress_bars():
            model.load_state_dict(type(model).from_pretrained(folder, dtype=model.dtype).state_dict())


def newest_checkpoint(folder: Path) -> Path | None:
    """The checkpoint of most steps that is whole (its state is written last); the others above it are removed."""
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]), reverse=True)
    for path in found:
        try:
            json.loads((path / "trainer_state.json").read_text("utf-8"))
        except (OSError, ValueError):
            shutil.rmtree(path, ignore_errors=True)
            continue
        return path
    return None


def out_of_patience(history: Sequence[float], patience: int) -> bool:
    """Whether the last ``patience`` validations were no better than the best before them."""
    return len(history) > patience and max(history[-patience:]) <= max(history[:-patience])


def write_model(out: Path, model: Any, tokenizer: Any, declaration: Mapping[str, Any]) -> None:
    """Put model, tokenizer and declaration into the folder, file by file, ``config.json`` last."""
    temporary = out / ".model"
    shutil.rmtree(temporary, ignore_errors=True)
    with no_progress_bars():
        model.save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    replace_file(temporary / DECLARATION, json.dumps(declaration, indent=2) + "\n")
    for path in sorted(temporary.iterdir(), key=lambda path: path.name == "config.json"):
        path.replace(out / path.name)
    temporary.rmdir()


def read_header(out: Path) -> dict[str, Any] | None:
    """What a finished training says of itself; None for one that is not finished."""
    return dict(json.loads((out / HEADER).read_text("utf-8"))) if (out / HEADER).is_file() else None


def write_header(out: Path, header: Mapping[str, Any]) -> None:
    replace_file(out / HEADER, json.dumps(header, indent=2) + "\n")
