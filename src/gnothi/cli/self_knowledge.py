"""``gnothi train self-knowledge``: a model learns to say whether it knows (SKILL-RAG)."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnothi.cli import options, training
from gnothi.cli.spending import stoppable
from gnothi.config import Settings
from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.protocols import Retriever
from gnothi.report.terminal import console as terminal
from gnothi.types import Passage, Question

if TYPE_CHECKING:
    from gnothi.models import ModelSettings
    from gnothi.training.self_knowledge.answers import Familiar
    from gnothi.training.self_knowledge.settings import SelfKnowledgeSettings

ANSWERS_FOLDER = "answers"


@dataclass(frozen=True, slots=True)
class Job:
    """What one command is to do."""

    dataset: str
    questions: Sequence[Question]
    model: str
    index: str | None
    model_settings: ModelSettings
    settings: SelfKnowledgeSettings
    out: Path
    answers: Path
    about_answers: dict[str, Any]
    about_training: dict[str, Any]
    concurrency: int
    max_failures: int | None


@click.command("self-knowledge")
@click.argument("dataset", metavar="QUESTIONS")
@training.own_model
@click.option(
    "--index",
    metavar="lab|PATH",
    help="Where sentences to show are found, with --set answers.sentences=N. [default: lab, with the lab model]",
)
@options.settings
@training.out("trained model")
@click.option(
    "--answers",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Folder of the sampled answers, to share them between trainings. [default: answers in --out]",
)
@click.option("--answers-only", is_flag=True, help="Sample answers and stop.")
@options.collecting
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: what was reached.")
def self_knowledge(
    dataset: str,
    model: str,
    index: str | None,
    config: Path | None,
    overrides: tuple[str, ...],
    limit: int | None,
    out: Path,
    answers: Path | None,
    answers_only: bool,
    format: str | None,
    concurrency: int,
    max_failures: int | None,
    as_json: bool,
) -> int:
    """Train a model to say whether it knows the answer (SKILL-RAG, sections 4.1 and 4.2; needs the extra `training`).

    \b
    gnothi train self-knowledge lab-train:one_hop --out knowing
    gnothi train self-knowledge train.jsonl --model PATH --out knowing --set answers.n=10
    gnothi eval lab --model knowing --method skill_rag
    gnothi train self-knowledge lab-train:one_hop --out filtering --set answers.sentences=4

    First several answers are sampled to each question, from memory; then the model is rewarded for Yes where it is mostly right
    and for No where it is not. --out is then a model folder. docs/training.md lists the settings (--set) and what is written.

    The same command again goes on after an interruption and ends in the same model. Exit code 1: some questions failed.
    """
    from gnothi.session.resources import load_questions
    from gnothi.training.self_knowledge.answers import require_usable

    training.refuse_test_questions(dataset)
    settings = options.read(config, overrides)
    chosen = _settings(settings)
    model_settings = training.settings_to_train(model, settings)
    questions = load_questions(dataset, format, limit)
    require_usable(questions)
    spec = _index(index, model, chosen.answers.sentences)
    about_answers, about_training = _configs(dataset, format, limit, questions, model, spec, settings, chosen)
    folder = answers or out / ANSWERS_FOLDER
    job = Job(
        dataset,
        questions,
        model,
        spec,
        model_settings,
        chosen,
        out,
        folder,
        about_answers,
        about_training,
        concurrency,
        max_failures,
    )
    with stoppable(out):
        failed, result = _run(job, answers_only)
    if as_json:
        if _leads():
            terminal.print_json(result)
    elif _leads():
        _show(job, result, failed)
    return training.SOME_FAILED if failed else 0


def _settings(settings: Settings) -> SelfKnowledgeSettings:
    from gnothi import config, methods
    from gnothi.methods.given import MODEL_SECTION
    from gnothi.training.self_knowledge.settings import SelfKnowledgeSettings

    return config.build(SelfKnowledgeSettings, settings.plain({MODEL_SECTION, *methods.names()}), "self-knowledge")


def _index(index: str | None, model: str, sentences: int) -> str | None:
    """Where sentences are found; None where none are shown."""
    from gnothi.session.resources import LAB, LAB_MODELS

    if not sentences:
        if index is not None:
            raise InvalidSetting("--index: got one, but no sentences are shown. Say how many with --set answers.sentences=4.")
        return None
    spec = index or (LAB if model in LAB_MODELS else None)
    if spec is None:
        raise InvalidSetting(
            f"setting 'answers.sentences': got {sentences}, but there is no index to find them: give --index PATH."
        )
    return spec


def _configs(
    dataset: str,
    format: str | None,
    limit: int | None,
    questions: Sequence[Question],
    model: str,
    index: str | None,
    settings: Settings,
    chosen: SelfKnowledgeSettings,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the sampled answers depend on, and what the training does."""
    from gnothi.config import resolved

    answers = training.recorded(dataset, format, limit, questions, model, settings, index=(Retriever, index))
    answers |= {f"answers.{key}": value for key, value in resolved(chosen.answers).items()}
    return answers, answers | {f"training.{key}": value for key, value in resolved(chosen.training).items()}


def _leads() -> bool:
    """Whether this is the only process, or the first of those that a launcher started."""
    return int(os.environ.get("RANK", "0")) == 0


def _run(job: Job, answers_only: bool) -> tuple[int, dict[str, Any]]:
    """How many questions failed, and what was reached."""
    from contextlib import ExitStack

    from gnothi.runs.journal import claim
    from gnothi.training.self_knowledge.answers import read_answers

    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    with ExitStack() as stack:
        if _leads():
            stack.enter_context(claim(job.out, job.about_training, "training"))
        # A launcher's processes would wait for each other too long.
        if several:
            asked = read_answers(job.answers, job.questions)
            failed = len(job.questions) - len({one.question.id for one in asked})
        else:
            asked, failed = asyncio.run(_collect(job))
        if not asked:
            raise InvalidInput(f"all {failed} questions failed; {job.answers} says why. Remove the cause and try again.")
        if answers_only:
            return failed, _familiarity(asked)
        return failed, _familiarity(asked) | {"training": _train(job, asked)}


async def _collect(job: Job) -> tuple[list[Familiar], int]:
    """What was sampled, and how many questions failed (with a sentence or without)."""
    from gnothi.cli.progress import RunProgress
    from gnothi.session.resources import open_model
    from gnothi.training.self_knowledge.answers import Answers
    from gnothi.training.self_knowledge.figures import draw_familiarity

    with Answers(job.answers, job.questions, job.about_answers, await _sentences(job)) as collecting:
        if collecting.missing:
            with terminal.Waiting(f"opening model {job.model} ..."):
                model = open_model(job.model, job.model_settings)
            try:
                total = len(collecting.asked)
                with RunProgress(total, total - len(collecting.missing), f"{job.dataset}: answers") as progress:
                    await collecting.run(
                        model,
                        job.settings.answers,
                        job.concurrency,
                        job.max_failures,
                        lambda line: progress.advance("error" in line, f"{collecting.spent['generated_tokens']:,} tokens"),
                    )
            finally:
                await model.aclose()
        asked = collecting.finish()
        if asked:
            draw_familiarity(job.answers, [one.acc_rate for one in asked], job.settings.answers.n)
        return asked, collecting.failed


async def _sentences(job: Job) -> dict[str, tuple[Passage, ...]]:
    """What each question is shown, by its id."""
    from gnothi.retrieval.registry import open_index
    from gnothi.training.self_knowledge.contexts import find

    if job.index is None:
        return {}
    with terminal.Waiting(f"opening index {job.index} ..."):
        retriever = open_index(job.index)
    try:
        return await find(job.questions, retriever, job.settings.answers.sentences, job.settings.answers.k)
    finally:
        await retriever.aclose()


def _train(job: Job, asked: Sequence[Familiar]) -> dict[str, Any]:
    from gnothi.cli.progress import RunProgress
    from gnothi.training.self_knowledge.stages import train

    settings = job.settings.training
    latest: dict[str, Any] = {}
    with RunProgress(settings.steps, 0, f"{job.dataset}: training") as progress:

        def listen(line: dict[str, Any]) -> None:
            latest.update(line)
            if "reward" in line and _leads():
                progress.reach(line["step"], _note(latest))

        origin = training.origin(job.model, job.model_settings)
        return train(job.out, origin, asked, settings, job.settings.answers.correct, listen)


def _note(line: dict[str, Any]) -> str:
    shown = [("reward", "reward"), ("yes_known", "P(Yes) known"), ("yes_unknown", "unknown")]
    return ", ".join(f"{label} {line[key]:.2f}" for key, label in shown if line.get(key) is not None)


def _familiarity(asked: Sequence[Familiar]) -> dict[str, Any]:
    rates = Counter(one.acc_rate for one in asked)
    return {
        "questions": len(asked),
        "known": sum(one.known for one in asked),
        "always_right": rates[1.0],
        "never_right": rates[0.0],
    }


def _show(job: Job, result: dict[str, Any], failed: int) -> None:
    known, total = result["known"], result["questions"]
    rows = [
        ("questions", f"{total:,}{f', {failed} failed' if failed else ''}"),
        ("known", f"{known:,}: {result['always_right']:,} always right, {result['never_right']:,} never right"),
        ("answers", str(job.answers)),
    ]
    if done := result.get("training"):
        before, after = done["before"], done["after"]
        for label, key in (
            ("reward", "validation_reward"),
            ("AUROC", "auroc"),
            ("P(Yes) known", "yes_known"),
            ("P(Yes) unknown", "yes_unknown"),
            ("refusal", "refusal"),
            ("hallucination", "hallucination"),
        ):
            rows.append((label, f"{training.number(before, key)} -> {training.number(after, key)}"))
        rows += [
            ("validated on", f"{done['questions']['validation']} questions; best after {done['best_step']} steps"),
            ("model", f"use it with --model {job.out}"),
        ]
    click.echo("\n".join(terminal.definitions(rows, indent=0)))
