"""A calibration on a terminal: the threshold, on what grounds, what it is worth, how good the probabilities are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnothi.errors import counted
from gnothi.report.numbers import between, percent, share, signed
from gnothi.report.terminal.console import paragraph

if TYPE_CHECKING:
    from rich.console import Console

    from gnothi.calibration.choose import Chosen, Worth
    from gnothi.calibration.file import Calibration
    from gnothi.stats.guarantee import Guarantee
    from gnothi.stats.intervals import Interval


def show(console: Console, calibration: Calibration, chosen: Chosen, tried: int = 1) -> None:
    """``tried`` signals this one was chosen from."""
    where = (
        "retrieve always"
        if abs(calibration.threshold) == float("inf")
        else f"retrieve {calibration.fires} {calibration.threshold:.6g}"
    )
    paragraph(
        console,
        f"{calibration.signal}: {where} (of {counted(chosen.n, 'question')} of {calibration.dataset}, "
        f"{chosen.trusted / chosen.n:.1%} are trusted)",
    )
    paragraph(
        console,
        f"from memory, {chosen.wrong} of {chosen.n} are wrong ({calibration.metric}); the signal tells which with AUROC "
        f"{share(chosen.auroc)}{_between(chosen.auroc_interval)}",
    )
    for line in (*_promise(chosen.guarantee), *_worth(chosen.worth, chosen.guarantee is not None), *_advice(chosen)):
        paragraph(console, line)
    if (effect := chosen.effect) and effect.samples == 1:
        paragraph(
            console,
            f"stopping early: all samples are drawn, because no rule saves any without more decisions that a second draw would "
            f"not make; two draws of all decide {effect.differ:.1%} of the questions differently",
        )
    elif effect:
        paragraph(
            console,
            f"stopping early: {effect.samples:.0%} of the samples are drawn; {effect.differ:.1%} of the questions are decided "
            f"otherwise than by a second draw of all, as are {effect.all_differ:.1%} by the first",
        )
    if effect := chosen.effect_compared:
        paragraph(
            console,
            f"in comparisons: {effect.samples:.0%} of the samples are drawn; in {effect.differ:.1%} of them another wins than "
            f"by a second draw of all, as in {effect.all_differ:.1%} by the first",
        )
    if tried > 1:
        paragraph(
            console,
            f"of {tried} signals, {calibration.signal} is worth most on questions that its threshold was not chosen on; the "
            "best of many looks better than it is, so evaluate it on others (--signal NAME takes another)",
        )
    if curves := chosen.probabilities:
        paragraph(
            console,
            "as probabilities of a wrong answer: calibration error of Platt's curve "
            f"{share(curves.platt_ece)}{_between(curves.platt_ece_interval)}, of the isotonic one "
            f"{share(curves.isotonic_ece)}{_between(curves.isotonic_ece_interval)}",
        )
    if calibration.method and calibration.answers_of != calibration.method:
        paragraph(
            console,
            f"all of this is about the answers of {calibration.answers_of}, and of {calibration.method} only as far as it "
            "answers alike where it retrieves nothing; for exact numbers, calibrate on a data set instead of a run",
        )
    if not calibration.model.name:
        paragraph(console, "the file does not say which model it is for: add --model NAME to use it without --ignore-mismatch")


def _promise(promise: Guarantee | None) -> list[str]:
    if promise is None:
        return []
    return [
        f"guarantee: with probability {1 - promise.epsilon:g} over the draw of these questions, at most "
        f"{promise.target_error:.1%} of the answers given without retrieval are wrong, on questions like these",
        f"grounds: of {counted(promise.tested, 'question')} tested, the gate trusts {promise.trusted} up to the highest "
        f"threshold that passed, {promise.wrong} of them wrong ({promise.wrong / promise.trusted:.1%}); p = {promise.p:.2g}",
    ]


def _worth(worth: Worth | None, limited: bool) -> list[str]:
    if worth is None:
        return []
    priced = f" (chosen at a price of {worth.price:g} a retrieval, which no accuracy here includes)" if worth.price else ""
    return [
        f"worth{priced}{', without the limit of the guarantee' if limited else ''}: accuracy {share(worth.accuracy)}"
        f"{_between(worth.interval)} with {percent(worth.retrieval_rate)} retrieving, on questions that it was not chosen on; "
        f"never {share(worth.never)}, always {share(worth.always)}, oracle {share(worth.oracle)}"
    ]


def _advice(chosen: Chosen) -> list[str]:
    """What follows, in plain words. With a guarantee nothing: what was judged are gates without its limit."""
    worth = chosen.worth
    if worth is None or chosen.guarantee is not None:
        return []
    if worth.best == "always":
        if chosen.wrong == chosen.n:
            why = "No answer from memory is fully right here, so there is nothing to trust"
        elif worth.oracle == worth.always and not worth.price:
            why = "No answer from memory is better here, so a gate can pay only with a price of searches (--search-cost)"
        else:
            why = "No threshold is worth more: the signal does not tell well enough when memory is right"
        return [f"recommended: always search. {why}. --method rag does it for less than a gate"]
    if worth.best == "never":
        gained = round(worth.always - worth.never, 9)
        if gained:
            why = "a search gains no more than its price" if gained > 0 else "searching makes answers worse on average"
        else:
            why = "a search changes nothing" if worth.oracle == worth.never else "searching gains as much as it loses"
        return [f"recommended: never search. On these questions {why}: --method cot or direct does it for less"]
    rate, end, quality = worth.retrieval_rate, "never", worth.never
    saved, how = -rate, f"searches for {percent(rate)} of the questions"
    if worth.always - worth.price > worth.never:
        end, quality, saved = "always", worth.always, 1 - rate
        how = f"saves {percent(saved)} of the searches"
    gain = worth.accuracy - quality
    priced = f" ({signed(gain + saved * worth.price)} with the price of searches)" if worth.price else ""
    return [f"recommended: this gate. Against {end} searching it {how}, at {signed(gain)} accuracy{priced}"]


def _between(interval: Interval | None) -> str:
    return "" if interval is None else f" ({between(interval)})"
