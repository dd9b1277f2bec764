"""``gnothi calibrate``: a threshold for one model, by what it is worth or with a guarantee, and probabilities from scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from gnothi.cli import options
from gnothi.cli.running import SOME_FAILED, say_charges, stoppable
from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.files import nearest
from gnothi.roles import EVERY_SIGNAL, GATED, STAGES

_LEARNT = {"data", "replaying", "learning", "search_cost", "metric", "never", "as_json"}
_MODES = {
    "choose": None,
    "replay": _LEARNT | {"always", "surer", "replayed_at", "plot", "html", "csv_folder"},
    "learn": _LEARNT | {"always", "surer", "wrong_cost", "token_cost", "judged", "plot", "html"},
    "learn with --out": _LEARNT | {"out", "wrong_cost", "token_cost", "target_error", "target_harm", "epsilon"},
}
"""What each way of calibrating takes; choosing a threshold takes what none of the others has to itself."""
_ASKING = "nothing is asked, and no model or index opened. Leave it out"
_UNUSED = {
    "limit": "all of it counts. Leave it out, or give a run or a file of fewer questions",
    "overrides": "its scores were made with settings of their own. Leave it out, or make a run with it (gnothi eval)",
    "config": "its scores were made with settings of their own. Leave it out, or make a run with it (gnothi eval)",
    "format": "its format is recognised. Leave it out",
} | dict.fromkeys("index graph seed concurrency workers on gpus max_failures cache max_cost max_tokens".split(), _ASKING)
"""Parameters that a run or a file of recorded outcomes has no use for, and why."""
_JUDGED = dict.fromkeys(("metric", "never", "always"), "people said which answers are right. Leave it out")
"""Those that feedback has no use for, too."""


@click.command()
@click.argument("data", metavar="[DATASET|RUN|FILE]...", nargs=-1, callback=options.or_of_config)
@click.option("--replay", "replaying", is_flag=True, help="Compare all gates on each RUN|FILE, without a model.")
@click.option(
    "--learn",
    "learning",
    is_flag=True,
    help=f"Learn a gate from all signals and texts of RUN|FILE...; with --out, write it for the method {STAGES}.",
)
@click.option(
    "--method",
    default=GATED,
    show_default=True,
    metavar="NAME",
    help="The method whose gate is calibrated; see `gnothi list methods`.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File of the calibration (TOML). With --learn: folder of the gate. [default: METHOD-DATASET.toml, or RUN.toml]",
)
@click.option(
    "--target-error",
    type=options.PROBABILITY,
    metavar="R",
    help="Guarantee that at most this share of the answers given without a search is wrong (with --learn and --out: of all "
    "answers).",
)
@click.option(
    "--target-harm",
    type=options.PROBABILITY,
    metavar="R",
    help="With --learn and --out: guarantee that at most this share of answers from evidence is wrong although memory was "
    "right.",
)
@click.option(
    "--epsilon",
    type=options.PROBABILITY,
    default=0.1,
    show_default=True,
    metavar="P",
    help="Highest probability that the guarantee fails.",
)
@click.option(
    "--search-cost",
    type=options.PRICE,
    metavar="COST",
    help="Cost of a search, in right answers: with 0.05, twenty searches must gain one right answer. [default: 0]",
)
@click.option(
    "--wrong-cost",
    type=options.PRICE,
    metavar="COST",
    help="With --learn: cost of a wrong answer, in right answers. [default: 0]",
)
@click.option(
    "--token-cost",
    type=options.PRICE,
    metavar="COST",
    help="With --learn: cost of a thousand tokens, in right answers. [default: 0]",
)
@click.option(
    "--stop-early",
    is_flag=True,
    help="Also choose a rule for when to stop drawing samples; calibration then draws twice as many.",
)
@click.option(
    "--signal",
    metavar="NAME",
    help="The signal, if a run, a file or the method panel has several. [default: the most useful; required with "
    "--target-error]",
)
@options.file("--feedback", "Use user feedback kept by `gnothi serve`, in place of a data set. Needs --target-error.")
@click.option(
    "--metric",
    metavar="NAME",
    help="Metric that says when an answer is right: em, f1, accuracy or, for a file of outcomes, contained. [default: em; for "
    "such a file contained]",
)
@click.option("--never", metavar="NAME", help="In a run or a file of outcomes: the answers that stand for never searching.")
@click.option("--always", metavar="NAME", help="In a run or a file of outcomes: the answers that stand for always searching.")
@click.option(
    "--surer",
    multiple=True,
    metavar="SIGNAL",
    help="With --replay, --learn: a recorded signal that rises with certainty (repeat). [known: energy_score]",
)
@click.option(
    "--threshold",
    "replayed_at",
    callback=options.thresholds,
    multiple=True,
    metavar="SIGNAL=VALUE",
    help="With --replay: show this threshold of a signal, in the units of the record (repeat).",
)
@click.option(
    "--judge",
    "judged",
    multiple=True,
    type=options.Existing(path_type=Path, exists=True),
    metavar="RUN|FILE",
    help="With --learn: judge the gate on these questions (repeat). [default: cross-fitted within each file]",
)
@options.sources(options.model, options.index, options.graph)
@options.asking
@options.file("--plot", "Draw the reliability diagram; with --replay the frontiers, with --learn the weights (PNG, SVG, PDF).")
@options.file("--html", "With --replay, --learn: write one self-contained page.")
@click.option(
    "--csv",
    "csv_folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="With --replay: write all numbers as CSV files.",
)
@options.json
@click.pass_context
def calibrate(
    ctx: click.Context,
    data: tuple[str, ...],
    replaying: bool,
    learning: bool,
    method: str,
    out: Path | None,
    target_error: float | None,
    target_harm: float | None,
    epsilon: float,
    search_cost: float | None,
    wrong_cost: float | None,
    token_cost: float | None,
    stop_early: bool,
    signal: str | None,
    feedback: Path | None,
    metric: str | None,
    never: str | None,
    always: str | None,
    surer: tuple[str, ...],
    replayed_at: dict[str, float],
    judged: tuple[Path, ...],
    sources: options.Sources,
    asking: options.Asking,
    plot: Path | None,
    html: Path | None,
    csv_folder: Path | None,
    as_json: bool,
) -> int:
    """Choose the threshold of a gate for one model, on questions with known answers. Or, with --replay, compare gates on
    recorded runs; or, with --learn, learn one.

    \b
    gnothi calibrate questions.jsonl --method seakr --model MODEL --index my-index
    gnothi calibrate questions.jsonl --method panel --model MODEL --index my-index
    gnothi calibrate lab-train --method seakr --target-error 0.1 --out lab.toml
    gnothi calibrate runs/lab --search-cost 0.05 --out priced.toml
    gnothi calibrate trivia.test.jsonl --signal eigen_score --target-error 0.3 --out t.toml
    gnothi calibrate --feedback feedback.jsonl --target-error 0.1 --out judged.toml
    gnothi calibrate --replay runs/lab recorded/*.test.jsonl --threshold perplexity=1.3 --html gates.html
    gnothi calibrate --replay scores.csv --never closed_right --always open_right
    gnothi calibrate --learn recorded/nq.dev.jsonl --judge recorded/nq.test.jsonl --search-cost 0.05
    gnothi calibrate --learn runs/train --search-cost 0.02 --out gate

    Each question of a data set is asked without a search and, unless only --target-error is given, again with a search. The
    answers are kept in OUT.runs: run the same command again to resume. With --method panel, all signals are measured, and the
    most useful signal is chosen. If no threshold is better than always searching, the command says so, and the gate always
    searches.

    User feedback can confirm or lower the threshold, but never raise it: an answer after a search says nothing about memory.

    A run of `gnothi eval` or a file of recorded outcomes needs no model. Options about asking (--limit, --set, --index ...)
    are then refused.

    --replay shows for each recorded signal how well it finds wrong answers (AUROC), and what its best threshold is worth on
    new questions (cross-validation). For comparison, it shows never searching, always searching, and the oracle, which takes
    the better of both for each question.

    --learn learns a gate from all signals and texts. It shows what the gate is worth on new questions, its weights, and why it
    searched for one question. With --out, the gate is learnt from runs of the method cascade without a gate, and written.
    --always, --surer, --judge, --plot and --html are then refused.

    Exit code 1: some questions failed; threshold and guarantee come from the others. Exit code 2: nothing can be chosen or
    guaranteed, and nothing is written.
    """
    typed = {
        option.name: option.opts[0]
        for option in ctx.command.params
        if option.name and ctx.get_parameter_source(option.name) is click.core.ParameterSource.COMMANDLINE
    }
    mode = _mode(typed, replaying, learning)
    files, costs = tuple(map(Path, data)), (search_cost or 0.0, wrong_cost or 0.0, token_cost or 0.0)
    if mode != "choose":
        from gnothi.calibration.learned_records import Prices
        from gnothi.cli import replay

        _check_there(files, mode)
        reading = replay.Reading(metric, never, always, surer)
        if mode == "replay":
            replay.replay(files, replayed_at, costs[0], reading, plot, html, csv_folder, as_json)
        elif out is None:
            replay.learn(files, judged, Prices(*costs), reading, plot, html, as_json)
        else:
            from gnothi.training.gate import Targets

            targets = Targets(target_error, target_harm, epsilon)
            replay.learn_gate(files, out, Prices(*costs), metric or "em", never, targets, as_json)
        return 0
    from gnothi.api.calibrate import Choice, source_from
    from gnothi.calibration import file
    from gnothi.calibration.source import replay_of
    from gnothi.cli.progress import ProgressWatch
    from gnothi.report.terminal import calibration_table
    from gnothi.report.terminal import console as terminal
    from gnothi.runs.rows import jsonable
    from gnothi.session.calibrate import RUNS

    if len(data) > 1:
        raise InvalidSetting(f"got {len(data)} data sets, expected one. Several go with --replay and --learn.")
    dataset = data[0] if data else None
    if (dataset is None) is (feedback is None):
        both = "both, and no guarantee holds for a mixture of questions and judged answers"
        raise InvalidSetting(f"expected either DATASET or --feedback FILE, got {'neither' if dataset is None else both}.")
    dataset = dataset or str(feedback)
    replayed = None if feedback else replay_of(dataset, metric, never, always)
    recorded = replayed is not None or feedback is not None
    _check_used(dataset, method, typed, recorded)
    out = out or Path(f"{Path(dataset).stem}.toml" if recorded else f"{method}-{Path(dataset).stem}.toml".replace(":", "-"))
    choice, watch = Choice(target_error, search_cost, epsilon, stop_early), ProgressWatch(quiet=as_json)
    named = method if "method" in typed or not recorded else None
    given: dict[str, Any] = {"model": sources.model if "model" in typed else None}
    if not recorded:
        given = {**sources.arguments(), **asdict(asking)}
    with stoppable(out.with_name(out.name + RUNS), lambda: watch.kept), watch:
        source = source_from(named, dataset, replayed, feedback, choice, metric, signal, out, watch, given)
    say_charges(watch.budget, err=True)
    made = choice.of(source)
    found, chosen = made.calibration.save(out), made.chosen
    if plot is not None:
        if chosen.probabilities is None:
            raise InvalidInput(
                "no reliability diagram: got (almost) only right or wrong answers, expected at least ten of each."
            )
        from gnothi.report.figures.scores import save_reliability

        save_reliability(chosen.probabilities, f"{source.signal} on {source.dataset}", plot)
    if as_json:
        terminal.print_json(jsonable(file.as_dict(found)))
    else:
        calibration_table.show(terminal.console(), found, chosen, source.tried)
        click.echo(f"calibration: {out}" + (f" (diagram: {plot})" if plot else ""))
    return SOME_FAILED if source.failed else 0


def _mode(typed: Mapping[str, str], replaying: bool, learning: bool) -> str:
    """Raises InvalidSetting for an option that goes with another one."""
    if replaying and learning:
        raise InvalidSetting("got --replay and --learn, expected one of them.")
    mode = "replay" if replaying else "learn with --out" if learning and "out" in typed else "learn" if learning else "choose"
    of_others = {"replayed_at", "csv_folder", "html", "judged", "wrong_cost", "token_cost", "target_harm", "surer"}
    for name, flag in typed.items():
        known = _MODES[mode]
        if name in of_others if known is None else name not in known:
            modes = [other for other, names in _MODES.items() if names and name in names]
            beside = "" if name == "out" or "learn" in modes else " --out"
            alone = " without --out" if mode == "learn with --out" else ""
            fits = dict.fromkeys(
                f"--{other.replace(' with --out', beside)}" + (alone if other == "learn" else "") for other in modes
            )
            instead = f"Use it with {' or with '.join(fits)}" if fits else "Leave it out"
            instead += "." if name in of_others else f", or leave out --{mode.partition(' ')[0]}."
            got = "without --replay or --learn" if mode == "choose" else f"with --{mode.replace(' with', '')}"
            raise InvalidSetting(f"{flag}: got it {got}, where it has no use. {instead}")
    return mode


def _check_there(files: tuple[Path, ...], mode: str) -> None:
    """Raises InvalidInput for no file, or one that is not there."""
    if not files:
        raise InvalidInput(f"--{mode.partition(' ')[0]}: got nothing to read, expected RUN|FILE..., as in runs/lab.")
    for one in files:
        if not one.exists():
            raise InvalidInput(
                f"there is no {one}. Expected the folder of a run, or a file of recorded outcomes. {nearest(one)}".rstrip()
            )


def _check_used(dataset: str, method: str, typed: Mapping[str, str], recorded: bool) -> None:
    """Raises InvalidSetting for a flag that would count for nothing. ``typed`` are the given ones by name of the parameter;
    ``recorded``: the data set is a run or a file of outcomes."""
    if not recorded and "signal" in typed and method != EVERY_SIGNAL:
        raise InvalidSetting(
            f"--signal: got it with the data set {dataset!r}, expected a run, a file of outcomes or --method {EVERY_SIGNAL}. "
            "Leave it out: the signal is a setting of the method, such as --set gate=gram (see `gnothi list methods NAME`)."
        )
    unused = _UNUSED | _JUDGED if "feedback" in typed else _UNUSED
    for name in (name for name in typed if recorded and name in unused):
        what = "a run" if Path(dataset).is_dir() else "feedback" if "feedback" in typed else "a file of recorded outcomes"
        raise InvalidSetting(f"{typed[name]}: got it with {what} ({dataset}), which has no use for it: {unused[name]}.")
