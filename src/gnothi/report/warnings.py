"""What a person should know before trusting a method's numbers: judged in one place, after the first rows and at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from gnothi.calibration.sentence_answers import sentence_answers
from gnothi.calibration.verdicts import degenerate, gate_summary
from gnothi.errors import counted, reason, sentence
from gnothi.metrics import named_choice
from gnothi.metrics.accuracy import echoes
from gnothi.metrics.holding import only_inside_words
from gnothi.metrics.spelling import matches_without_signs, misses_by_spelling, vanishes
from gnothi.report.numbers import share
from gnothi.runs.rows import Row
from gnothi.stats.intervals import mean

_FEWEST_ECHOES = 3
_NAMED = 6  # gold answers in a warning


def warnings_of(method: str, rows: Sequence[Row], *, gated: bool = True) -> tuple[str, ...]:
    """Of one method's rows, the worst first; nothing where nothing is odd. Not ``gated``: the gate was held shut or open."""
    answered = [row for row in rows if not row.failed]
    warnings = (
        degenerate(gate_summary(rows, None), method) if gated else None,
        _failed(rows),
        _partial(answered),
        _found_nothing(answered),
        _beside_the_choices(answered),
        _emptied(method, answered),
        _cut(answered),
        _thoughts(answered),
        _sentences(answered),
        _echoing(answered),
        _spelling(answered),
        _signs(answered),
        _inside_words(answered),
        _vanishing(answered),
        _unscored(answered),
    )
    return tuple(filter(None, warnings))


def _failed(rows: Sequence[Row]) -> str | None:
    """How many failed, and the commonest reason with an example."""
    errors = [row.error for row in rows if row.error]
    if not errors:
        return None
    (kind, count), *_ = Counter(error["type"] for error in errors).most_common(1)
    example = sentence(reason(next(error for error in errors if error["type"] == kind)))
    most = f"{count} with " if count < len(errors) else ""
    of = counted(len(rows), "question")
    return f"{len(errors)} of {of} failed, {most}{example} The same command tries them again."


def _partial(answered: Sequence[Row]) -> str | None:
    """How many were answered while servers of the index were away."""
    partial = sum(row.tally.get("partial", 0) > 0 for row in answered)
    if not partial:
        return None
    return (
        f"{partial} of {counted(len(answered), 'answer')} came about while a server of the index did not answer: passages were "
        "lacking. events.jsonl says which (partial); without `optional = true` such questions fail and are asked again"
    )


def _found_nothing(answered: Sequence[Row]) -> str | None:
    """How many searched, and were answered from memory alone, since nothing was found."""
    searched = [row for row in answered if row.retrieved]
    empty = sum(row.found_nothing for row in searched)
    if not empty:
        return None
    return (
        f"nothing was found for {empty} of {counted(len(searched), 'question')} with a search: these answers are from memory "
        "alone. Look what the index holds (gnothi index info, gnothi index search)"
    )


def _beside_the_choices(answered: Sequence[Row]) -> str | None:
    """Where most answers to multiple-choice questions name none of the choices: such a score says little about knowledge."""
    offered = [row for row in answered if row.choices]
    beside = sum(not named_choice(row.answer or "", row.choices) for row in offered)
    if 2 * beside <= len(offered):
        return None
    guessing = mean(1 / len(row.choices) for row in offered)
    names = "names" if beside == 1 else "name"
    return (
        f"{beside} of {counted(len(offered), 'answer')} {names} none of the choices, or several, and count as wrong; guessing "
        f"would be right in {guessing:.0%}"
    )


def _emptied(method: str, answered: Sequence[Row]) -> str | None:
    """Where a filter of passages or sentences mostly keeps nothing."""
    filtered = [row for row in answered if row.tally.get("filters")]
    emptied = sum(row.tally["emptied"] > 0 for row in filtered)
    if 2 * emptied <= len(filtered):
        return None
    return (
        f"the filter kept nothing of what was found in {emptied} of {counted(len(filtered), 'question')}: it decides what is "
        f"read no more. Its threshold may be for another model: `gnothi list methods {method}` tells the settings, `gnothi ask "
        f"QUESTION --method {method} --trace` what it saw"
    )


def _cut(answered: Sequence[Row]) -> str | None:
    """Where most replies were cut by the limit of their length."""
    cut, replies = (sum(row.tally.get(key, 0) for row in answered) for key in ("cut", "replies"))
    if 2 * cut <= replies:
        return None
    return (
        f"{cut:,} of {counted(replies, 'reply', 'replies')} were cut at the limit of their length: the model does not come to "
        "an end. Allow more with `--set max_tokens=N`; where it only rambles, try another form of prompt (`--set "
        "model.renderer=plain` or `chat`)"
    )


def _thoughts(answered: Sequence[Row]) -> str | None:
    """Where most thoughts were ended at their limit: answers then come from half a thought."""
    cut, replies = (sum(row.tally.get(key, 0) for row in answered) for key in ("thoughts_cut", "replies"))
    if 2 * cut <= replies:
        return None
    return (
        f"{cut:,} thoughts before {counted(replies, 'reply', 'replies')} were ended at their limit, and answered by as far as "
        "they were. Allow more with `--set model.thinking_tokens=N`"
    )


def _sentences(answered: Sequence[Row]) -> str | None:
    """Where exact match does not see what answers say, because they say it in sentences."""
    verbose = sentence_answers(answered)
    if verbose is None:
        return None
    reads = "reads" if verbose.sentences == 1 else "read"
    return (
        f"{verbose.sentences} of {counted(verbose.n, 'answer')} {reads} like sentences where short ones are expected: exact "
        f"match ({share(verbose.em)}) sees little of them. Look at accuracy ({share(verbose.accuracy)}: a right answer occurs "
        "in them), or ask for shorter ones: `--set model.renderer=plain`, and `--set reason=false` where a method reasons"
    )


def _echoing(answered: Sequence[Row]) -> str | None:
    """Where accuracy counts many answers as right that only say the question again."""
    right = [row for row in answered if row.gold and not row.choices and row.metrics.get("accuracy", 0) > 0]
    echoed = sum(echoes(row.answer or "", row.question, row.gold) for row in right)
    if echoed < _FEWEST_ECHOES or 5 * echoed <= len(right):
        return None
    return (
        f"{echoed} of {counted(len(right), 'answer')} that accuracy counts as right only say a part of the question again, as "
        f'"A or B" of "Which came first, A or B?": nothing was chosen. Look at exact match ({share(mean(_em(answered)))}), too'
    )


def _spelling(answered: Sequence[Row]) -> str | None:
    """How many answers exact match counts as wrong for the way they are written alone."""
    missed = [row for row in _free(answered) if misses_by_spelling(row.answer or "", row.gold)]
    if not missed:
        return None
    misses = "misses" if len(missed) == 1 else "miss"
    return (
        f"{counted(len(missed), 'answer')} {misses} exact match only by a dash, apostrophe, sign, digit, accent or width "
        f"({_example(missed, misses_by_spelling)}): the official normal form keeps these apart, accuracy does not"
    )


def _signs(answered: Sequence[Row]) -> str | None:
    """How many answers exact match counts as right since signs fall away."""
    matched = [row for row in _free(answered) if matches_without_signs(row.answer or "", row.gold)]
    if not matched:
        return None
    are = "is" if len(matched) == 1 else "are"
    return (
        f"{counted(len(matched), 'answer')} {are} right only since the official normal form drops signs and points "
        f"({_example(matched, matches_without_signs)}): look at them before you rely on exact match or accuracy"
    )


def _inside_words(answered: Sequence[Row]) -> str | None:
    """How many answers accuracy counts as right for a part of a word."""
    inside = [row for row in _free(answered) if row.metrics["em"] < 1 and only_inside_words(row.answer or "", row.gold)]
    if not inside:
        return None
    return (
        f"accuracy counts {counted(len(inside), 'answer')} as right in which the gold answer is a part of a longer word or "
        f"number ({_example(inside, only_inside_words)})"
    )


def _vanishing(answered: Sequence[Row]) -> str | None:
    """Which gold answers are too little for a comparison."""
    golds = list(dict.fromkeys(gold for row in _free(answered) for gold in row.gold if vanishes(gold)))
    if not golds:
        return None
    more = f" and {len(golds) - _NAMED} more" if len(golds) > _NAMED else ""
    normalise = "normalises" if len(golds) == 1 else "normalise"
    return (
        f"{counted(len(golds), 'gold answer')} {normalise} to nothing or to one letter ({', '.join(map(repr, golds[:_NAMED]))}"
        f"{more}): articles and signs fall away, so other answers count as the same, and accuracy finds them in any word"
    )


def _free(answered: Sequence[Row]) -> list[Row]:
    """Rows whose answers are compared letter by letter: with a gold answer, and no choices."""
    return [row for row in answered if row.metrics and row.gold and not row.choices]


def _example(rows: Sequence[Row], told: Callable[[str, Sequence[str]], bool]) -> str:
    """The first answer, for the gold answer of which it is ``told``."""
    answer, golds = rows[0].answer or "", rows[0].gold
    gold = next((one for one in golds if told(answer, (one,))), golds[0])
    return f'"{answer[:40]}" for "{gold[:40]}"'


def _em(answered: Sequence[Row]) -> list[float]:
    return [row.metrics["em"] for row in answered if row.metrics]


def _unscored(answered: Sequence[Row]) -> str | None:
    unscored = sum(not row.metrics for row in answered)
    return f"{counted(unscored, 'question has', 'questions have')} no gold answer and no score" if unscored else None
