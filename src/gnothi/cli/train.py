"""``gnothi train``: what is learnt from training questions, one command per thing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnothi.cli import options, training
from gnothi.cli.complexity import complexity
from gnothi.cli.groups import Group
from gnothi.cli.probe import probe
from gnothi.cli.reader import reader
from gnothi.cli.reranker import reranker
from gnothi.cli.self_knowledge import self_knowledge
from gnothi.cli.spending import spending
from gnothi.config import Settings
from gnothi.errors import InvalidSetting
from gnothi.protocols import Retriever
from gnothi.report.terminal import console as terminal
from gnothi.types import Question

if TYPE_CHECKING:
    from gnothi.training.utility_reference.labelling import UtilitySettings


@click.group(cls=Group)
def train() -> None:
    """Learn from training questions: what a method or a model is better with."""


train.add_command(self_knowledge)
train.add_command(reader)
train.add_command(reranker)
train.add_command(complexity)
train.add_command(probe)


@dataclass(frozen=True, slots=True)
class Job:
    """What one command is to compute."""

    dataset: str
    questions: Sequence[Question]
    model: str
    index: str
    settings: Settings
    utility: UtilitySettings
    config: dict[str, Any]
    out: Path
    concurrency: int
    max_failures: int | None


@train.command("utility-reference")
@click.argument("dataset", metavar="QUESTIONS")
@options.model
@options.index
@options.settings
@options.spending
@click.option(
    "--encoder",
    default="lexical",
    show_default=True,
    metavar="lexical|PATH|HUB-ID",
    help="What the reference is searched with: words, or a sentence-transformers model.",
)
@training.out("reference")
@options.collecting
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: the header of the reference.")
def utility_reference(
    dataset: str,
    model: str,
    index: str | None,
    config: Path | None,
    overrides: tuple[str, ...],
    cache: bool | None,
    max_cost: float | None,
    max_tokens: int | None,
    encoder: str,
    limit: int | None,
    out: Path,
    format: str | None,
    concurrency: int,
    max_failures: int | None,
    as_json: bool,
) -> int:
    """Label passages by whether they help or harm the answers to training QUESTIONS (KEQA, section 3.4).

    \b
    gnothi train utility-reference lab-train --out reference
    gnothi train utility-reference train.jsonl --model PATH --index my-index --out reference
    gnothi train utility-reference train.jsonl --model openai:NAME --index my-index --out reference --max-tokens 2000000

    The passages found for each question are read, and one that raises the F1 of the answer is labelled helpful, one that
    lowers it harmful. Settings (--set): k=5, form=auto|alone|accumulate, reason=none|true|false, max_tokens=100.

    The same command again completes an interrupted one and tries failed questions again; with another --encoder it keeps the
    labels. Exit code 1: some questions failed.
    """
    from gnothi.session.resources import LAB, LAB_MODELS, load_questions
    from gnothi.training.utility_reference.labelling import require_judgeable

    training.refuse_test_questions(dataset)
    settings = options.read(config, overrides, cache)
    budget = options.budget([model], max_cost, max_tokens)
    spec = index or (LAB if model in LAB_MODELS else None)
    if spec is None:
        raise InvalidSetting("passages are judged, and there is no index to find them: give --index PATH.")
    utility = _utility_settings(settings)
    questions = load_questions(dataset, format, limit)
    require_judgeable(questions)
    resolved = _config(dataset, format, limit, questions, model, spec, settings, utility)
    job = Job(dataset, questions, model, spec, settings, utility, resolved, out, concurrency, max_failures)
    with spending(budget, [model], out, err=as_json):
        header = asyncio.run(_build(job, encoder))
        if as_json:
            terminal.print_json(header)
        else:
            _show(header, out)
    return training.SOME_FAILED if header["failures"] else 0


@train.command("knowledge-reference")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="PATH", help="Folder of the reference.")
@click.option("--memory", default="direct", show_default=True, help="The run's method that answers from memory.")
@click.option("--retrieval", default="rag", show_default=True, help="The run's method that retrieves.")
@click.option(
    "--encoder",
    default="lexical",
    show_default=True,
    metavar="lexical|PATH|HUB-ID",
    help="What the reference is searched with: words, or a sentence-transformers model.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: how many questions of each kind.")
def knowledge_reference(run: Path, out: Path, memory: str, retrieval: str, encoder: str, as_json: bool) -> int:
    """Tell known from unknown training questions, for the method skr (SKR, section 3), by a RUN over them.

    \b
    gnothi eval lab-train --method direct,rag --out runs/train
    gnothi train knowledge-reference runs/train --out known
    gnothi eval lab --method skr --set reference=known --out runs/skr

    A question is known where the model answered it rightly from memory, unknown where only retrieval led to the right answer;
    one that neither did says nothing and is left out.
    """
    from gnothi.training.knowledge_reference.build import build

    training.refuse_test_run(run)
    counts = build(run, out, memory, retrieval, encoder)
    if as_json:
        terminal.print_json(counts._asdict())
        return 0
    rows = [
        ("questions", f"{counts.known:,} known, {counts.unknown:,} unknown, {counts.undecided:,} left out (neither was right)"),
        ("encoder", encoder),
        ("reference", str(out)),
    ]
    click.echo("\n".join(terminal.definitions(rows, indent=0)))
    return 0


def _utility_settings(settings: Settings) -> UtilitySettings:
    from gnothi import config, methods
    from gnothi.methods.given import MODEL_SECTION
    from gnothi.training.utility_reference.labelling import UtilitySettings

    return config.build(UtilitySettings, settings.plain({MODEL_SECTION, *methods.names()}), "utility-reference")


def _config(
    dataset: str,
    format: str | None,
    limit: int | None,
    questions: Sequence[Question],
    model: str,
    index: str,
    settings: Settings,
    utility: UtilitySettings,
) -> dict[str, Any]:
    """What the labels depend on; the encoder is none of it."""
    from gnothi.config import resolved

    about = training.recorded(dataset, format, limit, questions, model, settings, index=(Retriever, index))
    return about | {f"utility.{key}": value for key, value in resolved(utility).items()}


async def _build(job: Job, encoder: str) -> dict[str, Any]:
    from contextlib import AsyncExitStack

    from gnothi.cli.progress import RunProgress
    from gnothi.filtering.encoders import LEXICAL, SentenceEncoder
    from gnothi.retrieval.registry import open_index
    from gnothi.session.resources import model_settings, open_model
    from gnothi.training.utility_reference.labelling import Labelling

    searched = None
    if encoder != LEXICAL:
        with terminal.Waiting(f"opening encoder {encoder} ..."):
            searched = SentenceEncoder(encoder)
    with Labelling(job.out, job.questions, job.config) as labelling:
        if labelling.missing:
            async with AsyncExitStack() as stack:
                with terminal.Waiting(f"opening model {job.model} ..."):
                    retriever = open_index(job.index)
                    stack.push_async_callback(retriever.aclose)
                    model = open_model(job.model, model_settings([job.model], job.settings)[job.model])
                    stack.push_async_callback(model.aclose)
                total = len(job.questions)
                with RunProgress(total, total - len(labelling.missing), job.dataset) as progress:
                    await labelling.run(
                        model,
                        retriever,
                        job.utility,
                        job.concurrency,
                        job.max_failures,
                        lambda line: progress.advance("error" in line, training.cost(labelling.spent)),
                    )
        with terminal.Waiting(f"encoding ({encoder}) ..."):
            origin = {"model": job.model, "index": job.index, "dataset": job.dataset}
            return await asyncio.to_thread(labelling.finish, searched, origin)


def _show(header: dict[str, Any], out: Path) -> None:
    failed = f", {header['failures']} failed" if header["failures"] else ""
    rows = [
        ("questions", f"{header['questions']:,}{failed}"),
        (
            "passages",
            f"{header['passages']:,}: {header['helpful']:,} helpful, {header['harmful']:,} harmful, the rest no effect",
        ),
        ("cost", f"{header['retrievals']:,} searches, {header['model_calls']:,} model calls"),
        ("", f"{header['prompt_tokens']:,} prompt tokens, {header['generated_tokens']:,} generated tokens"),
        ("encoder", header["encoder"]),
        ("reference", str(out)),
    ]
    click.echo("\n".join(terminal.definitions(rows, indent=0)))
    lacking = [label for label in ("helpful", "harmful") if not header[label]]
    if lacking:
        click.echo(
            f"gnothi: no passage was {' or '.join(lacking)}, so there are no such demonstrations. Give more questions, or ones "
            "that the model does not all know (or all miss).",
            err=True,
        )
