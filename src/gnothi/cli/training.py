"""What the commands of ``gnothi train`` share: options, what is recorded of the questions, what may be trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnothi.config import Settings
from gnothi.errors import InvalidSetting
from gnothi.protocols import LanguageModel
from gnothi.types import Question
from gnothi.version import __version__

if TYPE_CHECKING:
    from gnothi.models import ModelSettings
    from gnothi.session.fingerprints import Named
    from gnothi.training.finetuning import Origin

SOME_FAILED = 1

own_model = click.option(
    "--model",
    default="lab",
    show_default=True,
    metavar="lab|PATH|HUB-ID",
    help="The model to train, which runs in this process.",
)


def out(what: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """Adds ``--out``; ``what`` the folder is of."""
    return click.option(
        "--out",
        required=True,
        type=click.Path(path_type=Path),
        metavar="PATH",
        help=f"Folder of the {what}; an unfinished one goes on.",
    )


def refuse_test_questions(dataset: str) -> None:
    """Raise InvalidSetting for the laboratory's test questions."""
    from gnothi.session.resources import LAB, LAB_TRAINING

    name, _, kind = dataset.partition(":")
    if name == LAB:
        instead = f"{LAB_TRAINING}:{kind}" if kind else LAB_TRAINING
        raise InvalidSetting(
            f"got the data set {dataset!r}, whose questions are for testing; expected training questions. Use "
            f"{instead!r}, which asks for none of their facts."
        )


def refuse_test_run(run: Path) -> None:
    """Raise InvalidSetting for a run over the laboratory's test questions, InvalidInput for a folder that is no run."""
    from gnothi.runs.journal import read_config

    try:
        refuse_test_questions(str(read_config(run).get("dataset.name", "")))
    except InvalidSetting as error:
        raise InvalidSetting(f"{run}: {error}") from None


def recorded(
    dataset: str,
    format: str | None,
    limit: int | None,
    questions: Sequence[Question],
    model: str,
    settings: Settings,
    **sources: Named,
) -> dict[str, Any]:
    """What anything learnt depends on: the questions, the model with its settings, and ``sources``, where things are looked
    up."""
    from gnothi.runs.journal import EXECUTION
    from gnothi.runs.runner import fingerprint
    from gnothi.session.fingerprints import fingerprints
    from gnothi.session.resources import recorded_settings

    return {
        "dataset.name": dataset,
        "dataset.format": format,
        "dataset.limit": limit,
        "dataset.questions": len(questions),
        "dataset.fingerprint": fingerprint(questions),
        "model.name": model,
        **{key: spec for key, (_, spec) in sources.items()},
        **recorded_settings([model], settings),
        **fingerprints({"model.name": (LanguageModel, model), **sources}),
        f"{EXECUTION}gnothi": __version__,
    }


def settings_to_train(model: str, settings: Settings) -> ModelSettings:
    """The settings of the model to train. Raises InvalidSetting for one whose weights are not at hand."""
    from gnothi.models import ModelSettings
    from gnothi.session.resources import model_settings

    built = model_settings([model], settings)[model]
    if not isinstance(built, ModelSettings):
        raise InvalidSetting(
            f"--model: got {model!r}, expected 'lab', a folder or a hub id: a model is trained in this process, by its weights."
        )
    return built


def origin(model: str, settings: ModelSettings) -> Origin:
    """What a training starts from."""
    from gnothi.models import LAB, LAB_FOLDER
    from gnothi.training.finetuning import Origin

    return Origin(model, str(LAB_FOLDER) if model == LAB else model, settings)


def cost(spent: Counter[str]) -> str:
    """What answering took, beside the progress."""
    return f"{spent['model_calls']:,} calls, {spent['prompt_tokens'] + spent['generated_tokens']:,} tokens"


def number(figures: dict[str, Any] | None, key: str) -> str:
    """A figure for the terminal; a dash where there is none."""
    value = (figures or {}).get(key)
    return "-" if value is None else f"{value:.3f}"
