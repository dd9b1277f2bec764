"""``gnothi eval``: methods over a data set into a run folder, resumable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnothi import __version__
from gnothi.calibration.apply import calibration, chosen_on, with_calibration
from gnothi.calibration.probes import check_probes, learnt_from
from gnothi.cli import options, repeat
from gnothi.cli.spending import spending
from gnothi.config import Settings
from gnothi.errors import InvalidSetting, RunStopped
from gnothi.protocols import KnowledgeGraph, LanguageModel, Retriever
from gnothi.types import Question

if TYPE_CHECKING:
    from gnothi.runs.folder import RunFolder
    from gnothi.runs.rows import Row
    from gnothi.runs.runner import Answer

SOME_FAILED = 1


@dataclass(frozen=True, slots=True)
class Job:
    """What one command is to compute: ``limit`` and ``format`` say how ``questions`` were read."""

    dataset: str
    questions: Sequence[Question]
    methods: Sequence[str]
    model: str
    index: str | None
    graph: str | None
    settings: Settings
    limit: int | None
    format: str | None
    seed: int
    concurrency: int
    workers: int
    max_failures: int | None

    @property
    def keys(self) -> list[tuple[str, str]]:
        return [(method, question.id) for method in self.methods for question in self.questions]


@click.command("eval")
@click.argument("dataset")
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME[,NAME...]",
    help="One or several; see `gnothi methods`. [default: seakr]",
)
@options.model
@options.index
@options.graph
@options.settings
@options.spending
@calibration
@options.asking
@click.option(
    "--out",
    "out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Folder of the run; an unfinished one goes on.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, a list with one object per method.")
def evaluate(
    dataset: str,
    methods: tuple[str, ...],
    model: str,
    index: str | None,
    graph: str | None,
    config: Path | None,
    overrides: tuple[str, ...],
    cache: bool | None,
    max_cost: float | None,
    max_tokens: int | None,
    calibration: Path | None,
    anyway: bool,
    limit: int | None,
    seed: int,
    out: Path,
    format: str | None,
    concurrency: int,
    workers: int,
    max_failures: int | None,
    as_json: bool,
) -> int:
    """Run methods over DATASET: `lab`, `lab:KIND` or a file of questions.

    \b
    gnothi eval lab --method direct,rag,seakr --out runs/lab
    gnothi eval questions.jsonl --method seakr --model PATH --index my-index --out runs/mine
    gnothi eval lab --method cot --model openai:NAME --max-tokens 2000000 --out runs/remote
    gnothi eval --config runs/lab/config.toml --seed 1 --out runs/again

    The same command again completes an interrupted run and tries failed questions again. --config with the config.toml of a
    run repeats it, but for what is given otherwise. Exit code 1: some questions failed.
    """
    from gnothi.calibration.from_run import trusts_all
    from gnothi.report.summary import summarise
    from gnothi.report.terminal import console as terminal
    from gnothi.report.terminal import summary_table
    from gnothi.runs.folder import RunFolder
    from gnothi.session.resources import load_questions, model_specs

    names = _names(methods)
    settings = options.read(config, overrides, cache)
    say = partial(click.echo, err=True)
    settings = with_calibration(calibration, anyway, model, names, settings, say)
    check_probes(anyway, model, names, settings)
    models = model_specs(model, names, settings)
    budget = options.budget(models, max_cost, max_tokens)
    check_workers(workers, models)
    resolved = resolved_settings(names, settings)
    trusting = [name for name in names if trusts_all(resolved, name)]
    questions = load_questions(dataset, format, limit)
    job = Job(
        dataset=dataset,
        questions=questions,
        methods=names,
        model=model,
        index=index,
        graph=graph,
        settings=settings,
        limit=limit,
        format=format,
        seed=seed,
        concurrency=concurrency,
        workers=workers,
        max_failures=max_failures,
    )
    about = run_config(job, resolved)
    repeat.compare(config, about, say)
    for spec in learnt_from(dataset, names, settings, about["dataset.fingerprint"]):
        say(
            f"warning: the probe {spec} learnt from questions of {dataset}, so it does better on them than on others. "
            "Evaluate on questions that it has not seen."
        )
    if calibration is not None and (warning := chosen_on(calibration, dataset, about["dataset.fingerprint"])):
        say(warning)
    with RunFolder(out, about) as folder, spending(budget, models, out, partial(_done, job, folder), err=as_json):
        try:
            rows = _complete(job, folder)
        except RunStopped:
            folder.write_summary(summarise(list(folder.rows.values()), dataset, trusting))
            raise
        summary = summarise(rows, dataset, trusting)
        folder.write_summary(summary)
        if as_json:
            terminal.print_json(summary.methods)
            for warning in summary.warnings:
                click.echo(f"warning: {warning}", err=True)
        else:
            summary_table.show(terminal.console(), summary)
            click.echo(f"run: {out} (pictures and every question: gnothi report {out} --html FILE)")
    return SOME_FAILED if any(method.failures for method in summary.methods) else 0


def check_workers(workers: int, models: Sequence[str]) -> None:
    """Raises InvalidSetting where several processes would wait for a model behind an API."""
    from gnothi.models import is_remote

    if workers > 1 and any(map(is_remote, models)):
        raise InvalidSetting(
            f"--workers: got {workers} with a model behind an API, expected 1: such a run waits for the server rather than "
            "computes, and one process counts what it costs. Raise --set model.concurrency=... instead."
        )


def _done(job: Job, folder: RunFolder) -> str:
    done = sum(key in folder.rows and not folder.rows[key].failed for key in job.keys)
    return f"{done} of {len(job.keys)} answers are"


def _complete(job: Job, folder: RunFolder) -> list[Row]:
    """All rows of the job; model and index are opened only where something is missing."""
    missing = [key for key in job.keys if key not in folder.rows or folder.rows[key].failed]
    return asyncio.run(_run(job, folder, len(missing))) if missing else folder.finish(job.keys)


async def _run(job: Job, folder: RunFolder, missing: int) -> list[Row]:
    from gnothi.cli.progress import RunProgress
    from gnothi.report.terminal import console as terminal
    from gnothi.runs.runner import run

    several = f" in {job.workers} processes" if job.workers > 1 else ""
    with terminal.Waiting(f"opening model {job.model}{several} ...") as waiting:
        async with _answering(job) as answer:
            waiting.stop()
            with RunProgress(len(job.keys), len(job.keys) - missing, job.dataset) as progress:
                return await run(
                    answer,
                    job.methods,
                    job.questions,
                    folder,
                    concurrency=job.concurrency,
                    max_failures=job.max_failures,
                    on_row=lambda row: progress.advance(row.failed),
                )


@asynccontextmanager
async def _answering(job: Job) -> AsyncIterator[Answer]:
    from gnothi.runs.runner import here
    from gnothi.runs.workers import workers
    from gnothi.session.resources import open_methods

    opened = partial(open_methods, job.model, job.index, job.settings, job.methods, job.graph)
    if job.workers == 1:
        async with opened() as methods:
            yield here(methods, job.seed)
    else:
        async with workers(job.workers, opened, job.seed) as several:
            yield several


def _names(methods: Sequence[str]) -> list[str]:
    """Method names from repeated and comma-separated options, each once."""
    names = list(dict.fromkeys(name.strip() for option in methods or ("seakr",) for name in option.split(",") if name.strip()))
    if not names:
        raise InvalidSetting(
            f"--method: got {', '.join(methods)!r}, expected the name of a method, as in --method direct,seakr."
        )
    return names


def resolved_settings(names: Sequence[str], settings: Settings) -> dict[str, Any]:
    """Every setting of every method with its value, by ``method.NAME.KEY``; raises for names and settings that do not exist."""
    from gnothi import config
    from gnothi import methods as registry
    from gnothi.methods.given import method_settings

    resolved: dict[str, Any] = {}
    for name, given in method_settings(names, settings).items():
        known = registry.settings_of(name)
        values = {key: setting.default for key, setting in known.items()} | config.check(given, known, f"method {name}")
        resolved |= {f"method.{name}.{key}": value for key, value in values.items()}
    return resolved


def run_config(job: Job, methods: Mapping[str, Any]) -> dict[str, Any]:
    """What the run's rows depend on. Under ``execution.``: what they do not."""
    from gnothi.runs.folder import EXECUTION
    from gnothi.runs.runner import fingerprint
    from gnothi.session.fingerprints import fingerprints, named_by
    from gnothi.session.resources import model_specs, recorded_settings

    sources = {
        "model.name": (LanguageModel, job.model),
        "index": (Retriever, job.index),
        "graph": (KnowledgeGraph, job.graph),
    }
    return {
        "dataset.name": job.dataset,
        "dataset.format": job.format,
        "dataset.limit": job.limit,
        "dataset.questions": len(job.questions),
        "dataset.fingerprint": fingerprint(job.questions),
        "seed": job.seed,
        "methods": list(job.methods),
        "model.name": job.model,
        "index": job.index,
        "graph": job.graph,
        **recorded_settings(model_specs(job.model, job.methods, job.settings), job.settings),
        **methods,
        **fingerprints(sources | named_by(job.methods, job.settings)),
        f"{EXECUTION}gnothi": __version__,
        f"{EXECUTION}concurrency": job.concurrency,
        f"{EXECUTION}workers": job.workers,
        f"{EXECUTION}max_failures": job.max_failures,
    }


def run_one(job: Job, out: Path) -> list[Row]:
    """The rows of a job of another command, kept in the folder ``out`` and completed there when the command is given again."""
    from gnothi.runs.folder import RunFolder

    with RunFolder(out, run_config(job, resolved_settings(job.methods, job.settings))) as folder:
        return _complete(job, folder)
