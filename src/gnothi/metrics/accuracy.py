"""Accuracy, as self-knowledge work uses the word: a normalised gold answer occurs inside the normalised answer. What answers
say of yes and no, which of several choices they name, and those that only say the question again."""

from __future__ import annotations

from collections.abc import Sequence

from gnothi.methods.steps.parsing import as_choice
from gnothi.metrics.normalise import normalise, tokens
from gnothi.metrics.spelling import alike, is_foreign_sign, spelt

YES, NO = "yes", "no"
_SAYS = {YES: YES, NO: NO, "true": YES, "false": NO}
_HYPHENS = "\u2010\u2011"
_BEYOND = 2


def accuracy(answer: str, golds: Sequence[str]) -> float:
    """1.0 or 0.0. Kinder than exact match to models that answer in sentences; containment is of characters.

    A gold answer yes or no counts if that is what the answer says (``verdict``): "no" is in "unknown" and in "not", too.
    So on StrategyQA this is the official accuracy. A gold answer that normalises to nothing is in every string, so it
    counts only against an answer that does too. Dashes, apostrophes, digits, accents and widths count as the same (``spelt``).
    """
    form = spelt(answer)
    return float(any(_right(answer, form, spelt(gold)) for gold in golds))


def _right(answer: str, form: str, gold: str) -> bool:
    if gold in (YES, NO):
        return verdict(answer) == gold
    return form == gold or (gold != "" and gold in form)


def contained(answer: str, golds: Sequence[str]) -> float:
    """1.0 if a normalised gold answer occurs in the normalised answer, yes and no like any other: how AdaRAGUE scores.

    As in ``accuracy``, a gold answer that normalises to nothing counts only against an answer that does too."""
    form = normalise(answer)
    return float(any(gold in form if gold else not form for gold in map(normalise, golds)))


def verdict(answer: str) -> str:
    """``yes``, ``no``, or nothing where the answer says neither or both.

    Its first word counts ("No, he was not"), true and false too; else the only one of yes and no that occurs as a word ("the
    answer is yes"). Dashes and signs of other scripts part words, those of ASCII as in the official normal form.
    """
    parted = "".join(" " if is_foreign_sign(one) and one not in _HYPHENS else one for one in answer)
    words = tokens(alike(parted))
    if words and words[0] in _SAYS:
        return _SAYS[words[0]]
    verdicts = {word for word in words if word in (YES, NO)}
    return verdicts.pop() if len(verdicts) == 1 else ""


def echoes(answer: str, question: str, golds: Sequence[str]) -> bool:
    """Whether an answer is a stretch of the question that holds a right answer and at least two words more, as in "Hamlet or
    Macbeth", asked which of them came first. Accuracy counts it as right, though nothing was chosen.

    A right answer with one word beside it ("Mike Muir" for "Muir") is no echo; neither is one among words of its own.
    """
    words, question_words = tokens(answer), tokens(question)
    if not any(question_words[at : at + len(words)] == words for at in range(len(question_words) - len(words) + 1)):
        return False
    right = [gold for gold in map(tokens, golds) if gold and " ".join(gold) in " ".join(words)]
    return bool(right) and all(len(words) >= len(gold) + _BEYOND for gold in right)


def named_choice(answer: str, choices: Sequence[str]) -> str:
    """By text or label (``as_choice``), else the only choice whose words occur in the answer, in a row; nothing where none does
    or several do.

    Containment of characters would not do: "work" is in "homework". A choice within another that occurs ("mall" in "strip
    mall") does not count beside it.
    """
    named = as_choice(answer, choices)
    if named in choices:
        return named
    words = _bounded(answer)
    by_form = {form: choice for choice in choices if (form := _bounded(choice)).strip() and form in words}
    longest = [choice for form, choice in by_form.items() if not any(form in other for other in by_form if other != form)]
    return longest[0] if len(longest) == 1 else ""


def _bounded(text: str) -> str:
    return f" {normalise(text)} "
