"""The names in a text, by their capitals, and which of them are to have met in a corpus. English."""

from __future__ import annotations

import re

OWNER = re.compile(r"['’]s\b")
_JOINING = frozenset("of the de da di del van von der la le el al".split())
_ASKING = frozenset(
    "who whom whose what which when where why how in on at of for from to by with is are was were do does did has have had can "
    "the a an if both between".split()
)
_OPENING = _ASKING | frozenset(
    "he she it they his her its their this that these those there here so thus therefore hence however then also as after "
    "before during while since because although i we you our my your no not yes".split()
)
_YEAR = re.compile(r"\b[12]\d{3}\b")
_SENTENCE = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)\s+")
_CONCLUSION = "the answer is"


def runs_of_names(question: str) -> tuple[str, ...]:
    """The names in a question as it writes them, each once: words with capitals beside each other, with small words between
    them ("Bank of England") and without the word that asks. Numbers go on with a name, and begin none."""
    runs: list[list[str]] = [[]]
    for place, piece in enumerate(OWNER.sub(";", question).split()):
        word = piece.strip(',;:?!"“”')
        first = word.lstrip("(‘'")[:1]
        begins = first.isupper() and not (place == 0 and word.lower() in _ASKING)
        goes_on = bool(runs[-1]) and (first.isdigit() or word.lower() in _JOINING)
        if begins or goes_on:
            runs[-1].append(word)
        if not (begins or goes_on) or piece[-1] in ",;:?!":
            runs.append([])
    return tuple(dict.fromkeys(name for run in runs if (name := _trimmed(run))))


def _trimmed(run: list[str]) -> str:
    """Without small words at the end."""
    while run and run[-1].lower() in _JOINING:
        run = run[:-1]
    return " ".join(run).rstrip(".")


def names_in_statement(sentence: str) -> tuple[str, ...]:
    """As ``runs_of_names``, in a statement: without a word that only opens it; then its years."""
    first, _, rest = sentence.strip().partition(" ")
    statement = rest if first.strip(",;:").lower() in _OPENING else sentence
    names = runs_of_names(f"who {statement}")  # what opens a question would be left out
    years = (year for year in _YEAR.findall(statement) if not any(year in name for name in names))
    return (*names, *dict.fromkeys(years))


def pairs(sentence: str, question: str) -> tuple[tuple[str, str], ...]:
    """The first name of a sentence with each other; a single one with those of the question. None for what concludes."""
    names = names_in_statement(sentence)
    if _CONCLUSION in sentence.lower() or not names:
        return ()
    if len(names) > 1:
        return tuple((names[0], other) for other in names[1:])
    (name,) = names
    others = runs_of_names(question)
    return tuple((one, name) for one in others if one.lower() not in name.lower() and name.lower() not in one.lower())


def all_pairs(text: str, question: str) -> tuple[tuple[str, str], ...]:
    """Of every sentence of a text; of what it concludes where there are none."""
    pairs_of_sentences = tuple(pair for sentence in _SENTENCE.split(text.strip()) for pair in pairs(sentence, question))
    place = text.lower().rfind(_CONCLUSION)
    return pairs_of_sentences or (pairs(text[place + len(_CONCLUSION) :], question) if place >= 0 else ())
