"""What trainings of a model's weights share: adapter, checkpoints, early stopping, the folder of the model they end with."""

from __future__ import annotations

import json
import random
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from gnothi.errors import InvalidInput, MissingDependency
from gnothi.models.engine.loading import Declaration, load, no_progress_bars
from gnothi.models.settings import ModelSettings
from gnothi.runs.journal import replace_file
from gnothi.weights import DECLARATION

METRICS, HEADER, CHECKPOINTS = "metrics.jsonl", "training.json", "checkpoints"
Adapter = Literal["lora", "full"]
Kind = Literal["CAUSAL_LM", "SEQ_2_SEQ_LM"]
"""PEFT's names of what a model does."""
E = TypeVar("E")


class Schedule(Protocol):
    """What the settings of every training hold."""

    @property
    def seed(self) -> int: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def validation(self) -> float: ...
    @property
    def evaluate_every(self) -> int: ...


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


def load_to_train(origin: Origin) -> tuple[Any, Any, Declaration]:
    """Model, tokenizer (which pads) and what the model's folder says of it. Raises ModelUnavailable."""
    model, tokenizer, declared = load(origin.source, origin.name, origin.to_train)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model, tokenizer, declared


@contextmanager
def quiet() -> Iterator[None]:
    """Without what the libraries say to each other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def split(examples: Sequence[E], settings: Schedule, few: str) -> tuple[list[E], list[E]]:
    """Training and validation examples, by chance. Raises InvalidInput, which says ``few``, for fewer than two."""
    if len(examples) < 2:
        raise InvalidInput(few)
    count = max(1, round(len(examples) * settings.validation))
    held = set(random.Random(f"{settings.seed}/split").sample(range(len(examples)), count))
    return [one for n, one in enumerate(examples) if n not in held], [one for n, one in enumerate(examples) if n in held]


def arguments(out: Path, model: Any, settings: Schedule, steps: int, best: str) -> dict[str, Any]:
    """What every trainer of the libraries is told; ``best`` is the figure that the best checkpoint is chosen by."""
    cpu, every = model.device.type == "cpu", min(settings.evaluate_every, steps)
    return {
        "output_dir": str(out / CHECKPOINTS),
        "max_steps": steps,
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": "linear",
        "seed": settings.seed,
        "use_cpu": cpu,
        "bf16": not cpu,
        "eval_strategy": "steps",
        "eval_steps": every,
        "save_steps": every,
        "save_total_limit": 2,  # the newest and the one before, beside the best
        "metric_for_best_model": best,
        "greater_is_better": True,
        "logging_steps": 1,
        "report_to": "none",
        "disable_tqdm": True,
    }


def silent(trainer: Any) -> Any:
    """The trainer without what it would print."""
    from transformers import PrinterCallback, ProgressCallback

    for callback in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(callback)
    return trainer


class Validating:
    """To stand before a trainer of the libraries: in place of its evaluation, ``validate``."""

    validate: Callable[[Any], Mapping[str, Any]]
    """From the model to the figures of a validation."""

    def evaluate(self, *_: Any, **__: Any) -> dict[str, Any]:
        trainer: Any = self
        model = trainer.accelerator.unwrap_model(trainer.model)
        figures = {f"eval_{name}": value for name, value in self.validate(model).items()}
        trainer.model.eval()  # so that the library files the figures under evaluation; a training step switches back
        trainer.log(dict(figures))
        trainer.control = trainer.callback_handler.on_evaluate(trainer.args, trainer.state, trainer.control, figures)
        return figures

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """None: the folder says what it is."""


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


def write_model(
    out: Path, model: Any, tokenizer: Any, trained: str, origin: Origin, declared: Declaration, thresholds: Mapping[str, float]
) -> None:
    """Put model, tokenizer and declaration into the folder; ``trained`` says what it learnt."""
    temporary = scratch(out)
    with no_progress_bars():
        model.save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    tasks = {} if declared.tasks is None else {"tasks": sorted(declared.tasks)}
    made = {"trained": trained, "from": origin.name}
    declaration = {"renderer": declared.renderer, **tasks, "thresholds": dict(thresholds), **made}
    replace_file(temporary / DECLARATION, json.dumps(declaration, indent=2) + "\n")
    move_into(out, temporary, last="config.json")


def scratch(out: Path) -> Path:
    """Where a model is saved before it is moved into ``out``."""
    temporary = out / ".model"
    shutil.rmtree(temporary, ignore_errors=True)
    return temporary


def move_into(out: Path, temporary: Path, last: str) -> None:
    """File by file; once ``last`` is there, the folder is a model."""
    for path in sorted(temporary.iterdir(), key=lambda path: path.name == last):
        if path.is_dir():
            shutil.rmtree(out / path.name, ignore_errors=True)
        path.replace(out / path.name)
    temporary.rmdir()


def read_header(out: Path) -> dict[str, Any] | None:
    """What a finished training says of itself; None for one that is not finished."""
    return dict(json.loads((out / HEADER).read_text("utf-8"))) if (out / HEADER).is_file() else None


def write_header(out: Path, header: Mapping[str, Any]) -> None:
    replace_file(out / HEADER, json.dumps(header, indent=2) + "\n")
