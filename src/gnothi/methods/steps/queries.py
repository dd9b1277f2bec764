"""Search queries out of what a model drafted."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from gnothi.methods.steps.parsing import bare, concludes, split_sentences
from gnothi.types import Generation

# Function words: they say nothing about what to look for.
_FUNCTION_WORDS = frozenset(
    """
    a about above after again against all also although am among an and any are aren't as at be became because become been
    before being below between both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during
    each either few for from further had hadn't has hasn't have haven't having he hence her here hers herself him himself his
    how however i if in into is isn't it its itself just may me might more most must my myself neither no nor not now of off on
    once only or other our ours ourselves out over own same shall she should shouldn't since so some such than that the their
    theirs them themselves then there therefore these they this those though through thus to too under until up upon us very
    was wasn't we were weren't what when where whether which while who whom whose why will with within without won't would
    wouldn't yes yet you your yours yourself yourselves answer
    """.split()
)
_POSSESSIVE = re.compile(r"['’]s?$")
_EDGES = re.compile(r"^\W+|\W+$")


def query_from_draft(draft: Generation, question: str, previous: str = "", certainty: float = 0.9) -> str:
    """The draft's certain content words (SeaKR, section 3.2, after FLARE, Jiang et al. 2023).

    A word stays when its least likely token has a probability of at least ``certainty``, or when the question or the
    ``previous`` sentence holds it; function words go. What is left, in order, is the query; the question where nothing is.
    A draft without log-probabilities keeps only words that were given.
    """
    known = set(map(_form, f"{question} {previous}".split()))
    limit = math.log(certainty) if certainty > 0 else -math.inf
    words = [
        stripped
        for position, (word, logprob) in enumerate(_words(draft))
        if (logprob >= limit or _form(word) in known)
        and (stripped := _EDGES.sub("", word))
        and not _is_function_word(stripped, first=position == 0)
    ]
    return " ".join(words) or question


def keywords(question: str) -> str:
    """The question without its function words; the question where nothing is left."""
    words = [_EDGES.sub("", word) for word in question.split()]
    content = [word for number, word in enumerate(words) if word and not _is_function_word(word, first=number == 0)]
    return " ".join(content) or question


def is_content(word: str, first: bool = True) -> bool:
    """Whether a word says what to look for: it has a letter or a digit and is no function word.

    ``first``: it opens a sentence, so that its capital makes no name of it."""
    stripped = _EDGES.sub("", word.strip())
    return bool(stripped) and not _is_function_word(stripped, first)


def _is_function_word(word: str, first: bool) -> bool:
    """A capital within a sentence makes a name of it: the band The Who, the month May, the US."""
    return word.casefold().replace("’", "'") in _FUNCTION_WORDS and (first or word[0].islower() or word in ("I", "A"))


def _form(word: str) -> str:
    """How words are compared: lower case, without punctuation around them and possessive endings."""
    return _EDGES.sub("", _POSSESSIVE.sub("", _EDGES.sub("", word.casefold())))


def _words(draft: Generation) -> list[tuple[str, float]]:
    """Words of the text, each with the log-probability of its least likely token; minus infinity where no token is found.

    Tokens are looked up in the text one after the other, whether or not they carry the spaces between them. One that does
    not occur (a part of a character) belongs where the last one ended.
    """
    text, cursor = draft.text, 0
    spans: list[tuple[int, int, float]] = []
    for token in draft.tokens:
        piece = token.text.strip()
        if not piece:
            continue
        start = text.find(piece, cursor)
        if start < 0:
            start, end = cursor, cursor + 1
        else:
            end = cursor = start + len(piece)
        spans.append((start, end, token.logprob))
    words = []
    for match in re.finditer(r"\S+", text):
        inside = [logprob for start, end, logprob in spans if start < match.end() and end > match.start()]
        words.append((match.group(), min(inside, default=-math.inf)))
    return words


def certain_words(draft: Generation, least: float) -> str:
    """The draft without the words whose least likely token has a probability below ``least`` (FLARE, section 3.2.2: masking
    tokens; whole words here, since an index knows no parts of them). Empty where nothing is left."""
    limit = math.log(least) if least > 0 else -math.inf
    return " ".join(word for word, logprob in _words(draft) if logprob >= limit)


def least_likely_by_sentence(draft: Generation) -> list[tuple[str, float]]:
    """Each sentence with the probability of its least likely token; 0 where a word has none."""
    words = iter(_words(draft))
    certainties = []
    for line in filter(None, map(str.strip, draft.text.splitlines())):
        for sentence in split_sentences(line):
            logprobs = [next(words)[1] for _ in sentence.split()]
            certainties.append((sentence, math.exp(min(logprobs, default=-math.inf))))
    return certainties


def uncertain_claims(draft: Generation, least: float) -> list[str]:
    """The sentences with a token less probable than ``least``, but for those that state the answer (SlimPLM)."""
    certainties = least_likely_by_sentence(draft)
    return [claim for claim, certainty in certainties if certainty < least and not concludes(claim)]


def uncertain_spans(draft: Generation, least: float) -> list[str]:
    """Each run of words that ``certain_words`` leaves out, without punctuation around it."""
    limit = math.log(least) if least > 0 else -math.inf
    spans: list[list[str]] = [[]]
    for word, logprob in _words(draft):
        if logprob < limit:
            spans[-1].append(word)
        elif spans[-1]:
            spans.append([])
    return [span for words in spans if (span := _EDGES.sub("", " ".join(words)))]


def adds_nothing(sentence: str, chain: Sequence[str]) -> bool:
    """Whether every word of a sentence that says something stands in the ``chain`` already."""
    known = {bare(word).casefold() for line in chain for word in line.split()}
    words = [bare(word).casefold() for place, word in enumerate(sentence.split()) if is_content(word, place == 0)]
    return all(word in known for word in words)
