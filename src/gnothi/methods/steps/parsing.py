"""What a model wrote, read: ``read_reply`` for its answer, and the text functions that chains of thought are built with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from gnothi.methods.steps.prompts import CONCLUSION
from gnothi.signals.replies import normalized, says_nothing
from gnothi.types import Generation
from gnothi.yes_or_no import asks_yes_or_no

_MARKER = re.compile(r"\bthe (?:final )?answer is\b[\s:]*", re.IGNORECASE)
_NAMES_NOTHING = re.compile(r"(?:\s*\b(?:so )?the (?:final )?answer is\b[\s:]*)+$", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
# What ends in a full stop within a sentence: initials ("J. R. R. Tolkien") and the commonest titles and abbreviations.
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'])(?:[A-Z]|(?:[A-Z]\.)+[A-Z]?|Dr|Mr|Mrs|Ms|St|Mt|Ft|Jr|Sr|Prof|Gen|Col|Capt|Lt|Rev|vs|ca)\.$"
)
_LABEL = re.compile(r"(?:(?:option|choice|answer)\s+)?\(?(?P<label>[A-Z])(?:[).:]+(?:\s+(?P<rest>.+))?)?", re.IGNORECASE)
# Anything but marks that end or part sentences: a sign ("+") can be an answer.
_WORD = re.compile(r"[^\s.,;:!?…\"'()\[\]*_–—-]")
_VERBS = frozenset("is are was were am be been has had have did does do can could will would".split())
_DOES = frozenset("did does do".split())  # of a question whose verb a reply repeats in another form
_PRONOUNS = frozenset("it he she they".split())
_LEADING = frozenset("a an the this that there in on at by to into from of as for also currently".split())
_CLAUSE = re.compile(r",?\s+(?:who|which|where|that|because|since)\s|;\s|\s\(")
_OWNER = re.compile(r"['’]s?(?=\W|$)")
_BY = re.compile(r"^[a-z]+ by ")
# The longest stretch of words that is looked for again; from _LONG words on, twice is a circle, below three times.
_LONGEST, _LONG = 16, 4
_PIECES = re.compile(r"\s*[^\s-]*[\s-]*")  # "Irish-Irish-Irish" goes round, too
_WITHIN = re.compile(r"((?!0)[^\W_]\S{0,29}?[^\d\s])\1{5,}")  # "200.200.200.200.200.200"; numbers may have many zeros
_EDGES = re.compile(r"^\W+|\W+$")
_YES = frozenset({"yes", "yeah", "true", "correct"})
_NO = frozenset({"no", "nope", "false", "incorrect"})
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})\s*(?:[\w+#.-]+\s*)?")
_QUOTES = "\"'“”‘’«»"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wrote to a question, and what it says. Made by ``read_reply``."""

    text: str
    question: str
    choices: Sequence[str]

    @property
    def answer(self) -> str:
        """Its first sentence without full stop and quotation marks, or the choice that this names.

        With a question, that of a chatty reply, too: what "the answer is", or what its sentence says beyond the question."""
        return as_choice(_short_answer(self.text, self.question), self.choices)

    @property
    def conclusion(self) -> str:
        """What follows its first "the answer is", in that sentence; empty where it concludes nothing."""
        match = _MARKER.search(self.text)
        return _short_answer(self.text[match.end() :]) if match else ""

    @property
    def reasoning(self) -> str:
        """Up to where its conclusion names the answer; a reply without a conclusion is opened for one."""
        match = _MARKER.search(self.text)
        return self.text[: match.end()].rstrip(" :") if match else concluding(self.text.strip())

    @property
    def abstains(self) -> bool:
        """Whether the answer is blank or owns up to not knowing."""
        return says_nothing(self.answer)

    @property
    def repeats(self) -> bool:
        """Whether it says the same words again and again."""
        return self.once.text != self.text

    @property
    def once(self) -> Reply:
        """The reply up to where it repeats itself."""
        return replace(self, text=until_it_repeats(self.text))


def read_reply(text: str, question: str = "", choices: Sequence[str] = ()) -> Reply:
    """What a model wrote, read for its answer to ``question``; of ``choices``, the one that it names."""
    return Reply(text, question, choices)


def concludes(sentence: str) -> bool:
    """Whether a sentence states the answer and so ends a chain of thought."""
    return bool(_MARKER.search(sentence))


def _short_answer(reply: str, question: str = "") -> str:
    if not question:
        return _first_sentence(reply)
    if named := read_reply(reply).conclusion:
        return named
    lines = [line for line in "\n".join(_lines(reply)).removeprefix("Answer:").splitlines() if _WORD.search(line)]
    return _answer_within(_first_sentence(lines[0]), question) if lines else ""


def _lines(reply: str) -> list[str]:
    """Without the fences around code, in which some models put whatever they say."""
    lines = reply.strip().splitlines()
    return [line for line in lines if not _FENCE.fullmatch(line)] or [line.strip(" `~") for line in lines]


def _first_sentence(reply: str) -> str:
    lines = _lines(reply)
    first = split_sentences(lines[0])[0] if lines else ""
    return _unquoted(without_opening(_unquoted(first).removesuffix(".")).strip())


def bare(word: str) -> str:
    """Without punctuation around it."""
    return _EDGES.sub("", word)


def without_opening(answer: str) -> str:
    """Without a "So the answer is" at its end, after which nothing came: models say it in circles."""
    return _NAMES_NOTHING.sub("", answer)


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES:
        return text[1:-1].strip()
    return text


def sentence(text: str) -> str:
    """A generated sentence with its full stop, which a stop string has cut off; empty for blank text."""
    text = " ".join(text.split())
    return text if not text or text.endswith((".", "!", "?")) else text + "."


def split_sentences(text: str) -> list[str]:
    """Sentences of a line, full stops kept; initials and common abbreviations do not end one. At least one, maybe empty."""
    sentences: list[str] = []
    for piece in _SENTENCE_END.split(text.strip()):
        if sentences and _ABBREVIATION.search(sentences[-1]):
            sentences[-1] += " " + piece
        else:
            sentences.append(piece)
    return sentences


def first_sentence(reply: Generation) -> Generation:
    """The reply, with its tokens, up to the end of the first sentence."""
    words = map(re.escape, split_sentences(reply.text)[0].split())
    match = re.compile(r"\s*" + r"\s+".join(words)).match(reply.text)
    return cut(reply, match.end() if match else 0)


def cut(reply: Generation, end: int) -> Generation:
    """Its first ``end`` characters, with the tokens that begin in them."""
    ends = accumulate(len(token.text) for token in reply.tokens)
    tokens = tuple(token for token, after in zip(reply.tokens, ends, strict=True) if after - len(token.text) < end)
    return replace(reply, text=reply.text[:end], tokens=tokens)


def concluding(*chain: str) -> str:
    """A chain of thought as it stands with the opening of its conclusion: the model only has to name the answer."""
    return " ".join([*(part for part in chain if part), CONCLUSION])


def as_choice(answer: str, choices: Sequence[str]) -> str:
    """The choice that ``answer`` names; ``answer`` itself where it names none.

    By its text, whatever its case and punctuation; by its label ("B", "(b)", "option B", "B) mall"; A is the first); or by its
    first sentence, where ``Reply.answer`` has left no more of it and no other choice begins alike.
    """
    if not choices or answer in choices:
        return answer
    form = normalized(answer)
    equal = next((choice for choice in choices if form and normalized(choice) == form), None)
    if equal is not None:
        return equal
    labelled = _LABEL.fullmatch(answer.strip())
    if labelled and (position := ord(labelled["label"].upper()) - ord("A")) < len(choices):
        named, rest = choices[position], normalized(labelled["rest"] or "")
        if not rest or rest == normalized(named):
            return named
    begun = {choice for choice in choices if form and normalized(_short_answer(choice)) == form}
    return begun.pop() if len(begun) == 1 else answer


def until_it_repeats(text: str) -> str:
    """The text up to where it says the same words again and again; the first time stays.

    Three times in a row is a circle ("very very" is none), of stretches of four words and more already twice; within a word,
    six times. Case and punctuation do not matter."""
    if circle := _WITHIN.search(text):
        text = text[: circle.end(1)]
    words = _PIECES.findall(text)
    forms = [bare(word).casefold() for word in words]
    for end in range(1, len(words)):
        for length in range(1, min(_LONGEST, end) + 1):
            times = 2 if length >= _LONG else 3
            start = end - length
            if forms[start : start + times * length] == forms[start:end] * times:
                return "".join(words[:end]).strip(" -\n")
    return text


def yes_or_no(answer: str) -> str:
    """``yes`` or ``no`` for an answer that begins so ("Yes, it is."), any other answer unchanged."""
    first = normalized(answer).partition(" ")[0]
    return "yes" if first in _YES else "no" if first in _NO else answer


def _answer_within(sentence: str, question: str) -> str:
    """What a ``sentence`` says beyond the ``question``, where all else in it is the question's own words around a verb;
    otherwise the sentence as it is, so what is left is never blank nor the question's own subject.

    "George Rankin was a politician" → "politician", "Paris is the capital of France" → "Paris". A reply without a verb is left
    alone unless what it adds is ``_set_off``, and so is one to a question to be answered by yes or no.
    """
    words = sentence.split()
    if len(words) < 3 or asks_yes_or_no(question):
        return sentence
    known = frozenset(normalized(_OWNER.sub("", question)).split())
    own = [_repeats(word, known) for word in words]
    start = own.index(False) if False in own else len(words)
    before = [word for word in map(_bare, words[:start]) if word not in _LEADING]
    if _VERBS.intersection(before) or (len(before) > 1 and (_DOES & known or _set_off(words, start))):
        return _addition(" ".join(words[start:]), known) or sentence
    # "Who wrote Emma?": the second word is the verb that its answer stands before.
    asks, *others = question.split() or [""]
    verbs = _VERBS | {_bare(word) for word in others[:1] if asks.casefold() == "who"}
    end = next((place for place, word in enumerate(words) if place and _bare(word) in verbs), None)
    if end is not None and all(own[end:]):
        return _addition(" ".join(words[:end]), known) or sentence
    return sentence


def _set_off(words: Sequence[str], start: int) -> bool:
    """Whether what begins there is told from the words before it though they hold no verb that is known: by a sign, a
    preposition, or as a name ("the director Ada Bell"). "The ferry inn" is one thing."""
    *_, before = words[:start]
    named = all(word[0].isupper() for word in words[start : start + 2]) and len(words) > start + 1 and before[0].islower()
    return before[-1] in ":,-–—" or _bare(before) in _LEADING or named


def _addition(text: str, known: frozenset[str]) -> str:
    """The text up to its first clause, without "written by"; empty where it has no word beyond the ``known`` ones."""
    text = _BY.sub("", _CLAUSE.split(text, maxsplit=1)[0].strip(" ,.:;-–—"))
    return text if any(not _repeats(word, known) for word in text.split()) else ""


def _repeats(word: str, known: frozenset[str]) -> bool:
    """Whether a word is the question's, in some form ("flows" of "flow"), or says nothing by itself."""
    bare = _bare(_OWNER.sub("", word))
    if not bare or bare in _VERBS | _LEADING | _PRONOUNS | known:
        return True
    return word[0].islower() and any(_akin(bare, other) for other in known)


def _akin(word: str, other: str) -> bool:
    short, long = sorted((word, other), key=len)
    return len(short) > 2 and len(long) - len(short) <= 3 and long.startswith(short[: max(3, len(short) - 1)])


def _bare(word: str) -> str:
    return normalized(word).replace(" ", "")
