"""``gnothi train reader``: a model learns to answer from what a method puts before it (IEKR)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnothi.cli import options, training
from gnothi.cli.spending import stoppable
from gnothi.config import Given, Settings
from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.protocols import KnowledgeGraph, Retriever
from gnothi.report.terminal import console as terminal
from gnothi.types import Question

if TYPE_CHECKING:
    from gnothi.models import ModelSettings
    from gnothi.training.reader.material import Example
    from gnothi.training.reader.settings import ReaderTraining

PROMPTS_FOLDER = "prompts"


@dataclass(frozen=True, slots=True)
class Job:
    """What one command is to do. ``asking`` are the settings that the method and its models get."""

    dataset: str
    questions: Sequence[Question]
    model: str
    model_settings: ModelSettings
    index: str | None
    method: str
    asking: Settings
    settings: ReaderTraining
    by: Any
    out: Path
    prompts: Path
    about_prompts: dict[str, Any]
    about_training: dict[str, Any]
    concurrency: int
    max_failures: int | None
    graph: str | None = None


@click.command("reader")
@click.argument("dataset", metavar="QUESTIONS")
@training.own_model
@click.option(
    "--method",
    default="rag",
    show_default=True,
    metavar="NAME",
    help="The method whose reader is trained: what it would put before a question is what is read.",
)
@options.index
@options.graph
@options.settings
@training.out("trained model")
@click.option(
    "--prompts",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Folder of the prompts, to share them between trainings. [default: prompts in --out]",
)
@click.option("--prompts-only", is_flag=True, help="Make the prompts and stop.")
@options.collecting
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: what was reached.")
def reader(
    dataset: str,
    model: str,
    method: str,
    index: str | None,
    graph: str | None,
    config: Path | None,
    overrides: tuple[str, ...],
    out: Path,
    prompts: Path | None,
    prompts_only: bool,
    limit: int | None,
    format: str | None,
    concurrency: int,
    max_failures: int | None,
    as_json: bool,
) -> int:
    """Train a model to answer from what a method puts before it (IEKR, section 4.3; needs the extra `training`).

    \b
    gnothi train reader lab-train:choice --method rag --out reading --set k=3
    gnothi train reader train.jsonl --method direct --model PATH --out answering
    gnothi eval lab:choice --model reading --index lab --method rag --set reason=false --set choose=likelihood --out runs/read

    First the method makes its prompt for each question, as it would to answer it; then the model learns the gold answers that
    follow them. --out is then a model folder. docs/training.md lists the settings (--set) and what is written; settings of the
    method are given as usual.

    The same command again goes on after an interruption and ends in the same model. Exit code 1: some questions failed.
    """
    from gnothi.session.fingerprints import fingerprints, named_by
    from gnothi.session.resources import load_questions
    from gnothi.training.reader.material import require_usable

    training.refuse_test_questions(dataset)
    given = options.read(config, overrides)
    chosen, asking = _settings(given, method)
    model_settings = training.settings_to_train(model, given)
    resolved = _resolved(method, asking)
    by = resolved.get(f"method.{method}.choice_score", "tokens")
    if resolved.get(f"method.{method}.reason"):
        raise InvalidSetting(
            "setting 'reason': got true, expected false: gold answers teach to answer at once, there are no chains of thought "
            "to learn from."
        )
    if by == "label":
        raise InvalidSetting(
            "setting 'choice_score': got label, expected sum, tokens or characters: a reader learns to say the choice itself."
        )
    questions = load_questions(dataset, format, limit)
    require_usable(questions)
    sources = {"index": (Retriever, index), "graph": (KnowledgeGraph, graph)}
    about = training.recorded(dataset, format, limit, questions, model, given, **sources) | {
        "methods": [method],
        **resolved,
        **fingerprints(named_by([method], asking)),
    }
    settings = {f"training.{key}": value for key, value in _plain(chosen).items()}
    job = Job(
        dataset, questions, model, model_settings, index, method, asking, chosen, by, out,
        prompts or out / PROMPTS_FOLDER, about, about | settings, concurrency, max_failures, graph,
    )  # fmt: skip
    with stoppable(out):
        failed, result = _run(job, prompts_only)
    if as_json:
        terminal.print_json(result)
    else:
        _show(job, result, failed)
    return training.SOME_FAILED if failed else 0


def _settings(given: Settings, method: str) -> tuple[ReaderTraining, Settings]:
    """The training's settings, and the others. A method that can reason does not, unless told to: there are no chains of
    thought to learn from. Raises UnknownName or InvalidSetting."""
    from gnothi import config, methods
    from gnothi.methods.given import INDEX_SECTION, MODEL_SECTION
    from gnothi.training.reader.material import require_prompts
    from gnothi.training.reader.settings import ReaderTraining

    require_prompts(method)
    known, of_method = config.settings_of(ReaderTraining), methods.settings_of(method)
    plain = given.plain({MODEL_SECTION, INDEX_SECTION, *methods.names()})
    config.check(plain, {**of_method, **known}, f"train reader with method {method}")
    own = {key: value for key, value in plain.items() if key in known}
    others = {key: value for key, value in given.given.items() if key not in own}
    if "reason" in of_method and not {"reason", f"{method}.reason"} & others.keys():
        others["reason"] = Given("false", "gnothi train reader")
    return config.build(ReaderTraining, own, "train reader"), Settings(others)


def _resolved(method: str, asking: Settings) -> dict[str, Any]:
    from gnothi.cli.evaluate import resolved_settings

    return resolved_settings([method], asking)


def _plain(settings: ReaderTraining) -> dict[str, Any]:
    from gnothi.config import resolved

    return resolved(settings)


def _run(job: Job, prompts_only: bool) -> tuple[int, dict[str, Any]]:
    """How many questions failed, and what was reached."""
    from gnothi.runs.journal import claim

    with claim(job.out, job.about_training, "training"):
        examples = asyncio.run(_collect(job))
        failed = len(job.questions) - len(examples)
        if not examples:
            raise InvalidInput(f"all {failed} questions failed; {job.prompts} says why. Remove the cause and try again.")
        passages = [len(example.prompt.passages) for example in examples]
        result = {"questions": len(examples), "passages": sum(passages) / len(passages)}
        return failed, result if prompts_only else result | {"training": _train(job, examples)}


async def _collect(job: Job) -> list[Example]:
    from gnothi.cli.progress import RunProgress
    from gnothi.session.resources import open_methods
    from gnothi.training.reader.material import Asking, Material

    with Material(job.prompts, job.questions, job.about_prompts) as material:
        if material.missing:
            with terminal.Waiting(f"opening model {job.model} ...") as waiting:
                async with open_methods(job.model, job.index, job.asking, [job.method], job.graph) as methods:
                    waiting.stop()
                    method: Any = methods[job.method]
                    asking: Asking = method
                    total = len(job.questions)
                    with RunProgress(total, total - len(material.missing), f"{job.dataset}: prompts") as progress:
                        await material.run(
                            asking,
                            job.concurrency,
                            job.max_failures,
                            lambda line: progress.advance("error" in line, f"{material.spent['retrievals']:,} searches"),
                        )
        return material.finish()


def _train(job: Job, examples: Sequence[Example]) -> dict[str, Any]:
    from gnothi.cli.progress import RunProgress
    from gnothi.training.reader.stages import train

    latest: dict[str, Any] = {}
    with RunProgress(job.settings.steps, 0, f"{job.dataset}: training") as progress:

        def listen(line: dict[str, Any]) -> None:
            latest.update(line)
            if "loss" in line:
                progress.reach(line["step"], _note(latest))

        origin = training.origin(job.model, job.model_settings)
        return train(job.out, origin, examples, job.settings, job.by, listen)


def _note(line: dict[str, Any]) -> str:
    shown = [("loss", "loss"), ("validation_loss", "validation"), ("validation_accuracy", "right")]
    return ", ".join(f"{label} {line[key]:.2f}" for key, label in shown if line.get(key) is not None)


def _show(job: Job, result: dict[str, Any], failed: int) -> None:
    rows = [
        ("questions", f"{result['questions']:,}{f', {failed} failed' if failed else ''}"),
        ("prompts", f"{job.prompts}: {result['passages']:.1f} passages each, by {job.method}"),
    ]
    if done := result.get("training"):
        before, after, asked = done["before"], done["after"], done["questions"]
        for label, key in (("right answers", "validation_accuracy"), ("loss", "validation_loss")):
            rows.append((label, f"{training.number(before, key)} -> {training.number(after, key)}"))
        left_out = f", {asked['too_long']} left out, longer than the model can read" if asked["too_long"] else ""
        rows += [
            ("validated on", f"{asked['validation']} questions{left_out}; best after {done['best_step']} steps"),
            ("model", f"use it with --model {job.out}"),
        ]
    click.echo("\n".join(terminal.definitions(rows, indent=0)))
