"""``gnothi train probe``: a gate of one forward pass, learnt from the model's own mistakes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnothi.cli import options, training
from gnothi.cli.spending import spending
from gnothi.config import Settings
from gnothi.report.terminal import console as terminal
from gnothi.types import Question

if TYPE_CHECKING:
    from gnothi.protocols import LanguageModel
    from gnothi.training.probe.findings import Findings, ProbeSettings


@dataclass(frozen=True, slots=True)
class Job:
    """What the command is to do."""

    dataset: str
    questions: Sequence[Question]
    model: str
    settings: Settings
    probe: ProbeSettings
    config: dict[str, Any]
    out: Path
    concurrency: int
    max_failures: int | None


@click.command()
@click.argument("dataset", metavar="QUESTIONS")
@options.model
@options.settings
@options.spending
@training.out("probe")
@options.collecting
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: what probe.json says.")
def probe(
    dataset: str,
    model: str,
    config: Path | None,
    overrides: tuple[str, ...],
    cache: bool | None,
    max_cost: float | None,
    max_tokens: int | None,
    limit: int | None,
    out: Path,
    format: str | None,
    concurrency: int,
    max_failures: int | None,
    as_json: bool,
) -> int:
    """Learn to tell from one forward pass whether a model will answer training QUESTIONS wrongly.

    \b
    gnothi train probe lab-train --limit 2900 --out my-probe
    gnothi train probe train.jsonl --model PATH --out my-probe --set target=uncertainty
    gnothi eval lab --method compose --set gate=probe --set probe=my-probe --out runs/probe
    gnothi ask "..." --set signal=question --set probe=my-probe

    The folder holds two gates: probe reads a hidden state of the prompt, question only the words of the question (all there
    is for a model behind an API). Settings (--set): target=correctness|uncertainty, prompts, layers, sites, metric, and those
    of methods with a gate: reason, signal, samples, max_tokens, ... docs/training.md tells more.

    The same command again completes an interrupted one and tries failed questions again. Exit code 1: some questions failed.
    """
    from gnothi import config as configuration
    from gnothi import methods
    from gnothi.methods.given import MODEL_SECTION
    from gnothi.session.resources import load_questions
    from gnothi.training.collecting import require_answers, require_distinct
    from gnothi.training.probe.findings import WHY, ProbeSettings

    training.refuse_test_questions(dataset)
    settings = options.read(config, overrides, cache)
    budget = options.budget([model], max_cost, max_tokens)
    chosen = configuration.build(ProbeSettings, settings.plain({MODEL_SECTION, *methods.names()}), "probe")
    questions = load_questions(dataset, format, limit)
    require_answers(questions, WHY)
    require_distinct(questions)
    about = training.recorded(dataset, format, limit, questions, model, settings)
    about |= {f"probe.{key}": value for key, value in configuration.resolved(chosen).items()}
    job = Job(dataset, questions, model, settings, chosen, about, out, concurrency, max_failures)
    with spending(budget, [model], out, err=as_json):
        result = asyncio.run(_build(job))
        if as_json:
            terminal.print_json(result)
        else:
            _show(result, out)
    return training.SOME_FAILED if result["failures"] else 0


async def _build(job: Job) -> dict[str, Any]:
    from gnothi.cli.progress import RunProgress
    from gnothi.training.probe.findings import Findings

    async with contextlib.AsyncExitStack() as opened:
        # What the model cannot give is said before there is a folder that bears the wrong settings.
        model = _open(job, opened) if _is_new(job.out) else None
        with Findings(job.out, job.questions, job.config) as findings:
            if findings.missing:
                model = model or _open(job, opened)
                total = len(job.questions)
                with RunProgress(total, total - len(findings.missing), job.dataset) as progress:
                    await findings.run(
                        model,
                        job.probe,
                        job.concurrency,
                        job.max_failures,
                        lambda line: progress.advance("error" in line, training.cost(findings.spent)),
                    )
            await opened.aclose()  # what fits the probe may have the model's memory
            return await _fit(job, findings)


async def _fit(job: Job, findings: Findings) -> dict[str, Any]:
    from dataclasses import asdict

    from gnothi.models.identity import identify
    from gnothi.training.probe.findings import AGAIN

    with terminal.Waiting("fitting ..."):
        data = {"name": job.dataset, "fingerprint": job.config["dataset.fingerprint"]}
        origin = {"model": asdict(identify(job.model)), "data": data}
        made = await asyncio.to_thread(findings.finish, job.probe, origin)
    if failed := findings.why_failed():
        click.echo(f"warning: {failed} {AGAIN}", err=True)
    return made


def _is_new(folder: Path) -> bool:
    return not folder.exists() or (folder.is_dir() and all(item.name.startswith(".") for item in folder.iterdir()))


def _open(job: Job, opened: contextlib.AsyncExitStack) -> LanguageModel:
    """The model, able to give what is to be collected, to be closed at the end."""
    from gnothi.session.resources import model_settings, open_model

    with terminal.Waiting(f"opening model {job.model} ..."):
        model = open_model(job.model, model_settings([job.model], job.settings)[job.model])
    opened.push_async_callback(model.aclose)
    job.probe.check(model)
    return model


def _show(result: Mapping[str, Any], out: Path) -> None:
    failed = f", {result['failures']} failed" if result["failures"] else ""
    chosen = result["chosen"].get("probe")
    target = result["target"]
    told = "wrong answers" if target["name"] == "correctness" else f"{target['signal']} above {target['split']:g}"
    rows = [("questions", f"{result['questions']:,}{failed}: {result['wrong']:,} answered wrongly from memory")]
    rows.append(("learnt", told))
    if chosen is not None:
        prompt, layer, site = chosen["view"].split()
        rows.append(("reads", f"the last state of the prompt {prompt!r}, layer {layer}, {site}; ridge {chosen['ridge']:g}"))
    rows.append(
        ("held out", f"AUROC for wrong answers ({result['folds']} folds), threshold; tokens beyond the answer, read + written:")
    )
    for name, figures in result["held_out"].items():
        cost = result["cost"][name]
        tokens = f"{cost['prompt_tokens']:.1f} + {cost['generated_tokens']:.1f}"
        rows.append((f"  {name}", f"{_area(figures)}, {figures['threshold']:.3g}; {tokens}"))
    rows.append(("probe", str(out)))
    click.echo("\n".join(terminal.definitions(rows, indent=0)))
    if chosen is None:
        click.echo(
            "gnothi: the model shows no hidden states, so there is nothing to probe: only the signal question was learnt.",
            err=True,
        )


def _area(figures: Mapping[str, Any]) -> str:
    if figures["interval"] is None:
        return training.number(dict(figures), "auroc")
    low, high = figures["interval"]
    return f"{figures['auroc']:.3f} [{low:.3f}, {high:.3f}]"
