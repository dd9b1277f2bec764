"""``gnothi train``: what is learnt from training questions, one command per thing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gnothi.cli import options
from gnothi.cli.groups import Group
from gnothi.cli.running import SOME_FAILED
from gnothi.cli.saying import say
from gnothi.cli.spending import spending
from gnothi.cli.train_gate import gate
from gnothi.report.terminal import console as terminal

if TYPE_CHECKING:
    from gnothi.training.outcomes import Metric
    from gnothi.training.run import Trainable
    from gnothi.training.watch import Watch

    Kind = type[Trainable[Any]]

F = TypeVar("F", bound=Callable[..., Any])


@click.group(cls=Group)
def train() -> None:
    """Learn from training questions: what a method or a model is better with."""


# --- flags that several commands share -----------------------------------------------------------------------------

questions = click.argument("dataset", metavar="QUESTIONS")
several = click.argument("dataset", metavar="QUESTIONS ...", nargs=-1, required=True)
run_folder = click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
own_model = click.option(
    "--model",
    default="lab",
    show_default=True,
    metavar="lab|PATH|HUB-ID",
    help="The model to train, which runs in this process.",
)
encoder = click.option(
    "--encoder",
    default="lexical",
    show_default=True,
    metavar="lexical|PATH|HUB-ID",
    help="What the reference is searched with: words, or a sentence-transformers model.",
)
judged = click.option(
    "--metric",
    type=click.Choice(["em", "accuracy"]),
    default="em",
    show_default=True,
    help="An answer is right where it is a gold answer (em), or where it holds one (accuracy).",
)


def out(what: str) -> Callable[[F], F]:
    """Adds ``--out``; ``what`` the folder is of."""
    return click.option("--out", required=True, type=click.Path(path_type=Path), metavar="PATH", help=f"Folder of the {what}.")


def unfinished(what: str) -> Callable[[F], F]:
    return out(f"{what}; an unfinished one goes on")


def json_of(what: str) -> Callable[[F], F]:
    return click.option("--json", "as_json", is_flag=True, help=f"Print one JSON document: {what}.")


def stage(name: str, what: str, verb: str) -> Callable[[F], F]:
    """Adds ``--NAME`` and ``--NAME-only``, for what is found out before a training."""

    def add(command: F) -> F:
        folder = click.option(
            f"--{name}",
            "findings",
            type=click.Path(path_type=Path),
            metavar="PATH",
            help=f"Folder of the {what}, to share them between trainings. [default: {name} in --out]",
        )
        only = click.option(f"--{name}-only", "collect_only", is_flag=True, help=f"{verb} and stop.")
        return folder(only(command))

    return add


# --- what every command does ---------------------------------------------------------------------------------------


def learns(label: str, used: str) -> Callable[[Callable[[], Kind]], Callable[..., int]]:
    """A command made of a function that says what it trains. When that is done, ``label`` is explained by ``used``, in which {}
    is the folder."""

    def decorate(kind: Callable[[], Kind]) -> Callable[..., int]:
        @functools.wraps(kind)
        def command(
            *, dataset: str | tuple[str, ...], sources: options.Sources, asking: options.Asking, as_json: bool, **given: Any
        ) -> int:
            from gnothi.session.execute import budget_of
            from gnothi.training import processes
            from gnothi.training.job import Job
            from gnothi.training.run import run

            for group in (sources, asking):
                given |= {item.name: getattr(group, item.name) for item in fields(Job) if hasattr(group, item.name)}
            made = kind().of(dataset, **given)
            job, plan, budget = made.job, made.plan, budget_of(made.plan)
            with spending(budget, plan.remote, job.out, err=as_json):
                trained = run(made, _bars(), budget)
                if processes.leads():
                    rows = [] if job.collect_only else [(label, used.format(job.out))]
                    _show(as_json, trained.figures, [*made.report(trained), *rows])
            return SOME_FAILED if trained.failed else 0

        return command

    return decorate


def _bars() -> Watch:
    from gnothi.cli.progress import RunProgress
    from gnothi.training.watch import Watch

    class Bars(Watch):
        def waiting(self, message: str) -> terminal.Waiting:
            return terminal.Waiting(message)

        def counting(self, total: int, done: int, label: str) -> RunProgress:
            return RunProgress(total, done, label)

        def tell(self, message: str) -> None:
            say(message)

        def warn(self, message: str) -> None:
            say(f"warning: {message}")

    return Bars()


def _show(as_json: bool, figures: Any, rows: list[tuple[str, str]]) -> None:
    if as_json:
        terminal.print_json(figures)
    else:
        click.echo("\n".join(terminal.definitions(rows, indent=0)))


def _say_unfinished(run: Path) -> None:
    """A warning where the run that something was learnt from lacks answers."""
    from gnothi.report.sections import load_runs

    (section,) = load_runs([run])
    if section.missing:
        say(
            f"warning: {run} is unfinished: learnt from {len(section.rows):,} of {section.expected:,} answers. Complete it by "
            "the same `gnothi eval`, then learn again"
        )


# --- from questions ------------------------------------------------------------------------------------------------


@train.command("self-knowledge")
@questions
@options.sources(
    own_model,
    click.option(
        "--index",
        metavar="lab|PATH",
        help="Where sentences to show are found, with --set answers.sentences=N. [default: lab, with the lab model]",
    ),
    spending=False,
)
@unfinished("trained model")
@stage("answers", "sampled answers", "Sample answers")
@options.collecting
@json_of("what was reached")
@learns("model", "use it with --model {}")
def self_knowledge() -> Kind:
    """Train a model to say whether it knows the answer (SKILL-RAG, sections 4.1 and 4.2; needs the extra `training`).

    \b
    gnothi train self-knowledge lab-train:one_hop --out knowing
    gnothi train self-knowledge train.jsonl --model PATH --out knowing --set answers.n=10
    gnothi eval lab --model knowing --method skill_rag
    gnothi train self-knowledge lab-train:one_hop --out filtering --set answers.sentences=4

    First several answers are sampled to each question, from memory; then the model is rewarded for Yes where it is mostly right
    and for No where it is not. --out is then a model folder. docs/reference/training.md lists the settings (--set).

    The same command again goes on after an interruption and ends in the same model. Exit code 1: some questions failed.
    """
    from gnothi.training.self_knowledge.job import TrainableKnower

    return TrainableKnower


@train.command("reader")
@questions
@options.sources(
    own_model,
    click.option(
        "--method",
        default="rag",
        show_default=True,
        metavar="NAME",
        help="The method whose reader is trained: what it would put before a question is what is read.",
    ),
    options.index,
    options.graph,
    spending=False,
)
@unfinished("trained model")
@stage("prompts", "prompts", "Make the prompts")
@options.collecting
@json_of("what was reached")
@learns("model", "use it with --model {}")
def reader() -> Kind:
    """Train a model to answer from what a method puts before it (IEKR, section 4.3; needs the extra `training`).

    \b
    gnothi train reader lab-train:choice --method rag --out reading --set k=3
    gnothi train reader train.jsonl --method direct --model PATH --out answering
    gnothi eval lab:choice --model reading --index lab --method rag --set reason=false --set choose=likelihood --out runs/read

    First the method makes its prompt for each question, as it would to answer it; then the model learns the gold answers that
    follow them. --out is then a model folder. docs/reference/training.md lists the settings (--set); those
    of the method are given as usual.

    The same command again goes on after an interruption and ends in the same model. Exit code 1: some questions failed.
    """
    from gnothi.training.reader.job import TrainableReader

    return TrainableReader


@train.command("reranker")
@questions
@options.sources(
    options.model,
    options.graph,
    click.option(
        "--base",
        default="lab",
        show_default=True,
        metavar="lab|PATH|HUB-ID",
        help="What is trained: a cross-encoder, an encoder, or the laboratory's model as a judge.",
    ),
)
@unfinished("re-ranker")
@stage("pairs", "training pairs", "Make the pairs")
@options.collecting
@json_of("what was reached")
@learns("re-ranker", "use it with --set reranker={}")
def reranker() -> Kind:
    """Train a cross-encoder to find the facts a question needs (IEKR, section 4.2; needs the extras `dense` and `training`).

    \b
    gnothi train reranker lab-train:two_hop_choice --out my-reranker --set learning_rate=1e-3
    gnothi train reranker train.jsonl --model PATH --graph my-graph --base HUB-ID --out my-reranker
    gnothi ask "..." --method iekr --set reranker=my-reranker

    QUESTIONS are multiple choice; without --limit the first 500 are taken. First --model tells what it knows about the
    entities of each question; then --base learns to score facts of the graph that link a question to its gold choice above the
    others, reading [question : knowledge : fact]. --out is then a cross-encoder as sentence-transformers saves it.
    docs/reference/training.md lists the settings (--set).

    The same command again goes on after an interruption and ends in the same re-ranker. Exit code 1: some questions failed.
    """
    from gnothi.training.reranker.job import TrainableReranker

    return TrainableReranker


@train.command("probe")
@questions
@options.sources(options.model)
@unfinished("probe")
@options.collecting
@json_of("what probe.json says")
@learns("probe", "{}")
def probe() -> Kind:
    """Learn to tell from one forward pass whether a model will answer training QUESTIONS wrongly.

    \b
    gnothi train probe lab-train --limit 2900 --out my-probe
    gnothi train probe train.jsonl --model PATH --out my-probe --set target=uncertainty
    gnothi eval lab --method compose --set gate=probe --set signal.probe=my-probe --out runs/probe
    gnothi ask "..." --set signal=question --set signal.probe=my-probe

    The folder holds two gates: probe reads a hidden state of the prompt, question only the words of the question (all there
    is for a model behind an API). Settings (--set): target=correctness|uncertainty, prompts, layers, sites, metric, and those
    of methods with a gate: reason, signal, samples, max_tokens, ... docs/reference/training.md tells more.

    The same command again completes an interrupted one and tries failed questions again. Exit code 1: some questions failed.
    """
    from gnothi.training.probe.job import TrainableProbe

    return TrainableProbe


@train.command("utility-reference")
@several
@options.sources(options.model, options.index)
@encoder
@unfinished("reference")
@options.collecting
@json_of("the header of the reference")
@learns("reference", "{}")
def utility_reference() -> Kind:
    """Label passages by whether they help or harm the answers to training QUESTIONS (KEQA, section 3.4).

    \b
    gnothi train utility-reference lab-train --out reference
    gnothi train utility-reference hotpotqa.json nq-train.qa.csv --limit 500 --model PATH --index my-index --out reference
    gnothi train utility-reference train.jsonl --model openai:NAME --index my-index --out reference --max-tokens 2000000

    The passages found for each question are read, and one that raises the F1 of the answer is labelled helpful, one that
    lowers it harmful. Of several QUESTIONS the first --limit of each are taken. Settings (--set): k=5,
    form=auto|alone|accumulate, reason=none|true|false, max_tokens=100.

    The same command again completes an interrupted one and tries failed questions again; with another --encoder it keeps the
    labels. Exit code 1: some questions failed.
    """
    from gnothi.training.utility_reference.job import TrainableReference

    return TrainableReference


# --- from a run ----------------------------------------------------------------------------------------------------


@train.command("knowledge-reference")
@run_folder
@out("reference")
@click.option("--memory", default="direct", show_default=True, help="The run's method that answers from memory.")
@click.option("--retrieval", default="rag", show_default=True, help="The run's method that retrieves.")
@click.option(
    "--labels",
    type=click.Choice(["better", "right"]),
    default="better",
    show_default=True,
    help="Known is what memory alone got right, as in the authors' code; right: or both did, as in the paper.",
)
@judged
@encoder
@json_of("how many questions of each kind")
def knowledge_reference(run: Path, out: Path, as_json: bool, **given: Any) -> int:
    """Tell known from unknown training questions, for the method skr (SKR, section 3), by a RUN over them.

    \b
    gnothi eval lab-train --method direct,rag --out runs/train
    gnothi train knowledge-reference runs/train --out known
    gnothi eval lab --method skr --set reference=known --out runs/skr

    A question is known where the model answered it rightly from memory alone, unknown where only retrieval led to the right
    answer. One that both or neither got right says nothing and is left out; --labels right calls the former known.
    """
    from gnothi.training.knowledge_reference.build import train

    counts = train(run, out, **given)
    _say_unfinished(run)
    _show(as_json, asdict(counts), [*counts.report(), ("encoder", given["encoder"]), ("reference", str(out))])
    return 0


@train.command("complexity")
@run_folder
@out("classifier")
@click.option("--memory", default="cot", show_default=True, help="The run's method that answers from memory.")
@click.option("--once", default="rag", show_default=True, help="The run's method that retrieves once.")
@click.option("--steps", default="ircot", show_default=True, help="The run's method that retrieves in steps.")
@click.option(
    "--several-hops",
    "several_hops",
    multiple=True,
    metavar="KIND",
    help="Kind of question that takes several hops (repeatable). With it, questions that no method answered rightly are "
    "labelled by their kind; without it, they are left out.",
)
@judged
@json_of("labels and accuracy")
def complexity(
    run: Path, out: Path, memory: str, once: str, steps: str, several_hops: tuple[str, ...], metric: Metric, as_json: bool
) -> int:
    """Train the classifier of the method adaptive_rag (Adaptive-RAG, section 3) by a RUN over training questions.

    \b
    gnothi eval lab-train --method cot,rag,ircot --out runs/train
    gnothi train complexity runs/train --several-hops two_hop --several-hops comparison --out complexity
    gnothi eval lab --method adaptive_rag --set classifier=complexity --out runs/adaptive

    A question is labelled with the simplest of the three methods that answered it rightly.
    """
    from gnothi.training.complexity.build import train

    learnt = train(run, out, (memory, once, steps), several_hops or None, metric=metric)
    _say_unfinished(run)
    _show(as_json, asdict(learnt), [*learnt.report(), ("classifier", str(out))])
    return 0


train.add_command(gate)
