"""What trainings of a model's weights share: adapter, checkpoints, early stopping, the folder of the model they end with."""

from __future__ import annotations

import json
import random
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeVar

from gnothi.errors import InvalidInput, MissingDependency
from gnothi.files import home_expanded
from gnothi.models.engine.loading import Declaration, load, no_progress_bars
from gnothi.models.rendering import EscapeSpecialTokens, Renderer, make_renderer
from gnothi.models.settings import HereSettings, ModelSettings
from gnothi.models.wrappers import demonstrated, untitled
from gnothi.prompts.sets import SHIPPED
from gnothi.runs.journal import replace_file
from gnothi.training import processes
from gnothi.types import Prompt, Task
from gnothi.weights import DECLARATION

METRICS, HEADER, CHECKPOINTS = "metrics.jsonl", "training.json", "checkpoints"
TASKS = "tasks.toml"
"""The user's own set of tasks that a model was trained with, in its folder."""
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
    settings: HereSettings

    @property
    def to_train(self) -> ModelSettings:
        """The settings of its weights and format; how it would decode does not matter."""
        settings = self.settings
        quantize = settings.quantize if isinstance(settings, ModelSettings) else "off"
        return ModelSettings(
            device=settings.device, dtype=settings.dtype, renderer=settings.renderer, pack_weights=False, quantize=quantize
        )

    def demonstrations(self, declared: Declaration) -> str:
        """The set of tasks that it is shown, in training as in use."""
        return declared.demonstrations if self.settings.demonstrations == "auto" else self.settings.demonstrations


LIBRARIES = {"accelerate": "training", "datasets": "training", "peft": "training", "trl": "training", "matplotlib": "report"}
"""What a training of a language model takes, and the extra that brings it."""


def require_libraries(what: str, wanted: Mapping[str, str] = LIBRARIES) -> None:
    """Raise MissingDependency without one of them; ``what`` needs them. Loads none: it is asked before hours of work."""
    for name, extra in wanted.items():
        if find_spec(name) is None:
            raise MissingDependency(name, extra, what)


def load_to_train(origin: Origin) -> tuple[Any, Any, Declaration]:
    """Model, tokenizer (which pads) and what the model's folder says of it. Raises ModelUnavailable."""
    settings = origin.to_train
    if not processes.on_cuda(settings.device) and settings.dtype == "auto":
        settings = replace(settings, dtype="float32")  # what a processor answers faster in is too coarse to learn in
    model, tokenizer, declared = load(origin.source, origin.name, settings)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model, tokenizer, declared


class Showing:
    """A renderer that shows other tasks ``instead`` of some, and passages without ``titles`` where it is told so, as the model
    will be shown them in use."""

    def __init__(self, inner: Renderer, instead: Mapping[Task, Task], titles: bool = True) -> None:
        self._inner, self._instead, self._titles = inner, instead, titles

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def special_tokens(self) -> bool:
        return self._inner.special_tokens

    def render(self, prompt: Prompt) -> str:
        prompt = replace(prompt, task=self._instead.get(prompt.task, prompt.task))
        return self._inner.render(prompt if self._titles else untitled(prompt))


def renderer_of(origin: Origin, tokenizer: Any, declared: Declaration) -> Renderer:
    """How prompts become this model's text, in training as in use. Raises InvalidInput for tasks that cannot be read."""
    renderer = make_renderer(origin.settings.renderer, tokenizer, declared.renderer, day=origin.settings.date)
    titles = origin.settings.passages == "titled"
    return Showing(EscapeSpecialTokens(renderer, tokenizer), demonstrated(origin.demonstrations(declared)), titles)


@contextmanager
def quiet() -> Iterator[None]:
    """Without what the libraries say to each other."""
    with warnings.catch_warnings(), no_progress_bars():
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
        figures = {f"eval_{name}": value for name, value in processes.agreed(self.validate(model)).items()}
        trainer.model.eval()  # so that the library files the figures under evaluation; a training step switches back
        trainer.log(dict(figures))
        trainer.control = trainer.callback_handler.on_evaluate(trainer.args, trainer.state, trainer.control, figures)
        return figures

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """None: the folder says what it is."""


def newest_checkpoint(folder: Path) -> Path | None:
    """The checkpoint of most steps that is whole (its state is written last); the others above it are removed."""
    folders = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]), reverse=True)
    for path in folders:
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
    record: dict[str, Any] = {"trained": trained, "from": origin.name}
    if declared.world is not None:
        record["world"] = declared.world
    if (demonstrations := origin.demonstrations(declared)) in SHIPPED:
        record |= {} if demonstrations == SHIPPED[0] else {"demonstrations": demonstrations}
    else:
        shutil.copyfile(home_expanded(demonstrations), temporary / TASKS)
        record["demonstrations"] = TASKS
    declaration = {"renderer": declared.renderer, **tasks, "thresholds": dict(thresholds), **record}
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
