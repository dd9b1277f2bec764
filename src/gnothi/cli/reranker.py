"""``gnothi train reranker``: a cross-encoder learns which facts a question needs (IEKR)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnothi.cli import options, training
from gnothi.cli.spending import spending
from gnothi.config import Settings
from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.protocols import KnowledgeGraph, Reranker
from gnothi.report.terminal import console as terminal
from gnothi.types import Question

if TYPE_CHECKING:
    from gnothi.training.reranker.pairs import Example
    from gnothi.training.reranker.settings import RerankerSettings

PAIRS_FOLDER = "pairs"
QUESTIONS = 500
"""N, on how many the paper trains its cross-encoder: what is taken where no --limit is given."""


@dataclass(frozen=True, slots=True)
class Job:
    """What one command is to do."""

    dataset: str
    questions: Sequence[Question]
    model: str
    graph: str
    base: str
    given: Settings
    settings: RerankerSettings
    out: Path
    pairs: Path
    about_pairs: dict[str, Any]
    about_training: dict[str, Any]
    concurrency: int
    max_failures: int | None


@click.command("reranker")
@click.argument("dataset", metavar="QUESTIONS")
@options.model
@options.graph
@click.option(
    "--base",
    default="lab",
    show_default=True,
    metavar="lab|PATH|HUB-ID",
    help="What is trained: a cross-encoder, an encoder, or the laboratory's model as a judge.",
)
@options.settings
@options.spending
@training.out("re-ranker")
@click.option(
    "--pairs",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Folder of the training pairs, to share them between trainings. [default: pairs in --out]",
)
@click.option("--pairs-only", is_flag=True, help="Make the pairs and stop.")
@options.collecting
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: what was reached.")
def reranker(
    dataset: str,
    model: str,
    graph: str | None,
    base: str,
    config: Path | None,
    overrides: tuple[str, ...],
    cache: bool | None,
    max_cost: float | None,
    max_tokens: int | None,
    out: Path,
    pairs: Path | None,
    pairs_only: bool,
    limit: int | None,
    format: str | None,
    concurrency: int,
    max_failures: int | None,
    as_json: bool,
) -> int:
    """Train a cross-encoder to find the facts a question needs (IEKR, section 4.2; needs the extras `dense` and `training`).

    \b
    gnothi train reranker lab-train:two_hop_choice --out my-reranker --set learning_rate=1e-3
    gnothi train reranker train.jsonl --model PATH --graph my-graph --base HUB-ID --out my-reranker
    gnothi ask "..." --method iekr --set reranker=my-reranker

    QUESTIONS are multiple choice; without --limit the first 500 are taken. First --model tells what it knows about the
    entities of each question; then --base learns to score facts of the graph that link a question to its gold choice above the
    others, reading [question : knowledge : fact]. --out is then a cross-encoder as sentence-transformers saves it.
    docs/training.md lists the settings (--set).

    The same command again goes on after an interruption and ends in the same re-ranker. Exit code 1: some questions failed.
    """
    from gnothi.config import resolved
    from gnothi.session.fingerprints import fingerprints
    from gnothi.session.resources import LAB, LAB_MODELS, load_questions
    from gnothi.training.reranker.pairs import require_choices

    training.refuse_test_questions(dataset)
    settings = options.read(config, overrides, cache)
    chosen = _settings(settings)
    budget = options.budget([model], max_cost, max_tokens)
    spec = graph or (LAB if model in LAB_MODELS else None)
    if spec is None:
        raise InvalidSetting("facts come from a knowledge graph, and there is none: give --graph PATH.")
    questions = load_questions(dataset, format, limit or QUESTIONS)
    require_choices(questions)
    sources = {"graph": (KnowledgeGraph, spec)}
    about = training.recorded(dataset, format, limit or QUESTIONS, questions, model, settings, **sources)
    about |= {f"pairs.{key}": value for key, value in resolved(chosen.pairs).items()}
    training_ = {f"training.{key}": value for key, value in resolved(chosen.training).items()}
    job = Job(
        dataset,
        questions,
        model,
        spec,
        base,
        settings,
        chosen,
        out,
        pairs or out / PAIRS_FOLDER,
        about,
        about | {"base": base} | fingerprints({"base": (Reranker, base)}) | training_,
        concurrency,
        max_failures,
    )
    with spending(budget, [model], out, err=as_json):
        failed, result = _run(job, pairs_only)
        if as_json:
            terminal.print_json(result)
        else:
            _show(job, result, failed)
    return training.SOME_FAILED if failed else 0


def _settings(settings: Settings) -> RerankerSettings:
    from gnothi import config, methods
    from gnothi.methods.given import MODEL_SECTION
    from gnothi.training.reranker.settings import RerankerSettings

    return config.build(RerankerSettings, settings.plain({MODEL_SECTION, *methods.names()}), "reranker")


def _run(job: Job, pairs_only: bool) -> tuple[int, dict[str, Any]]:
    """How many questions failed, and what was reached."""
    from gnothi.runs.journal import claim

    lock = claim(job.out, job.about_training, "training")
    try:
        lines, examples = asyncio.run(_collect(job))
        failed = sum("error" in line for line in lines)
        if failed == len(lines):
            raise InvalidInput(f"all {failed} questions failed; {job.pairs} says why. Remove the cause and try again.")
        result = _counted(lines, examples)
        return failed, result if pairs_only else result | {"training": _train(job, examples)}
    finally:
        lock.close()


async def _collect(job: Job) -> tuple[list[dict[str, Any]], list[Example]]:
    from contextlib import AsyncExitStack

    from gnothi.cli.progress import RunProgress
    from gnothi.graph.registry import open_graph
    from gnothi.session.resources import model_settings, open_model
    from gnothi.training.reranker.pairs import CollectingPairs, examples

    with CollectingPairs(job.pairs, job.questions, job.about_pairs) as collecting:
        if collecting.missing:
            async with AsyncExitStack() as stack:
                with terminal.Waiting(f"opening graph {job.graph} and model {job.model} ..."):
                    graph = open_graph(job.graph)
                    stack.push_async_callback(graph.aclose)
                    model = None
                    if job.settings.pairs.internal:
                        model = open_model(job.model, model_settings([job.model], job.given)[job.model])
                        stack.push_async_callback(model.aclose)
                total = len(job.questions)
                with RunProgress(total, total - len(collecting.missing), f"{job.dataset}: pairs") as progress:
                    await collecting.run(
                        model,
                        graph,
                        job.settings.pairs,
                        job.concurrency,
                        job.max_failures,
                        lambda line: progress.advance("error" in line, f"{collecting.spent['generated_tokens']:,} tokens"),
                    )
        lines = collecting.in_order()
        return lines, examples(lines)


def _train(job: Job, found: Sequence[Example]) -> dict[str, Any]:
    from gnothi.cli.progress import RunProgress
    from gnothi.training.reranker.stages import steps, train

    latest: dict[str, Any] = {}
    with RunProgress(steps(found, job.settings.training), 0, f"{job.dataset}: training") as progress:

        def listen(line: dict[str, Any]) -> None:
            latest.update(line)
            if line["step"]:
                progress.reach(line["step"], _note(latest))

        return train(job.out, lambda: _base(job.base), job.base, found, job.settings.training, listen)


def _base(spec: str) -> Any:
    from gnothi.retrieval.rerank import LAB, load_cross_encoder

    if spec == LAB:
        from gnothi.lab.judge import judge

        return judge()
    return load_cross_encoder(spec, spec, untrained=True)


def _note(line: dict[str, Any]) -> str:
    shown = [("loss", "loss"), ("average_precision", "average precision")]
    return ", ".join(f"{label} {line[key]:.3f}" for key, label in shown if line.get(key) is not None)


def _counted(lines: Sequence[dict[str, Any]], found: Sequence[Example]) -> dict[str, Any]:
    candidates = sorted(line["candidates"] for line in lines if "candidates" in line)
    return {
        "questions": len(lines),
        "usable": len(found),
        "candidates": candidates[len(candidates) // 2],
        "positives": sum(len(one.positive) for one in found),
        "negatives": sum(len(one.negative) for one in found),
    }


def _show(job: Job, result: dict[str, Any], failed: int) -> None:
    total, usable = result["questions"], result["usable"]
    rows = [
        ("questions", f"{total:,}{f', {failed} failed' if failed else ''}; {usable:,} with facts that lead to the gold choice"),
        ("candidates", f"{result['candidates']:,} facts a question (median)"),
        ("pairs", f"{result['positives']:,} positives, {result['negatives']:,} negatives in {job.pairs}"),
    ]
    if reached := result.get("training"):
        for label, key in (("average precision", "average_precision"), ("a positive first", "first")):
            rows.append((label, f"{training.number(reached['before'], key)} -> {training.number(reached['after'], key)}"))
        rows += [
            ("validated on", f"{reached['questions']['validation']} questions; best after {reached['best_step']} steps"),
            ("re-ranker", f"use it with --set reranker={job.out}"),
        ]
    click.echo("\n".join(terminal.definitions(rows, indent=0)))
