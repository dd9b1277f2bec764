"""How the invented world speaks: its relations, with the sentences that state them and the questions that ask for them.

Everything the laboratory's texts are made of lives here, so that the tokenizer can collect its words from one place.
``{s}`` stands for the subject, ``{o}`` for the object. The first statement is the canonical one, which the model writes
when it reasons; passages use all of them. Statements end in ``of {s} is {o}.``: the subject stands two tokens before the
object, where a small model's positional heads find it (``docs/lab.md`` tells what happened with freer wordings). A relation
with a ``phrase`` ("the director of {s}") can be the first hop of a two-hop question.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Relation:
    """A kind of fact: subject type, object type, and its wordings. ``nouns`` name it; the first one is the canonical one."""

    name: str
    subject: str
    object: str
    nouns: tuple[str, str, str]
    questions: tuple[str, ...]
    bridge: bool = False

    @cached_property
    def statements(self) -> tuple[str, ...]:
        """Every noun with "is", the first two with "was" as well."""
        is_, was = ([f"The {noun} of {{s}} {verb} {{o}}." for noun in self.nouns] for verb in ("is", "was"))
        return (*is_, *was[:2])

    @cached_property
    def phrase(self) -> str:
        """What stands for the object as the subject of a further question; empty where it cannot."""
        return f"the {self.nouns[0]} of {{s}}" if self.bridge else ""


RELATIONS: tuple[Relation, ...] = (
    Relation(
        "birthplace",
        "person",
        "city",
        ("birthplace", "hometown", "origin"),
        (
            "Where was {s} born?",
            "In which city was {s} born?",
            "What is the birthplace of {s}?",
            "Which city does {s} come from?",
        ),
    ),
    Relation(
        "birth_year",
        "person",
        "year",
        ("birth year", "year of birth", "first year"),
        ("When was {s} born?", "In which year was {s} born?", "What is the birth year of {s}?"),
    ),
    Relation(
        "spouse",
        "person",
        "person",
        ("spouse", "partner", "consort"),
        ("Who is {s} married to?", "Who is the spouse of {s}?", "Who is the partner of {s}?"),
        bridge=True,
    ),
    Relation(
        "employer",
        "person",
        "company",
        ("employer", "company", "workplace"),
        ("Which company does {s} work for?", "Who employs {s}?", "What is the employer of {s}?"),
        bridge=True,
    ),
    Relation(
        "profession",
        "person",
        "profession",
        ("profession", "trade", "calling"),
        ("What is the profession of {s}?", "What does {s} do for a living?", "Which trade does {s} follow?"),
    ),
    Relation(
        "director",
        "film",
        "person",
        ("director", "maker", "film director"),
        ("Who directed {s}?", "Who made the film {s}?", "Who is the director of {s}?"),
        bridge=True,
    ),
    Relation(
        "star",
        "film",
        "person",
        ("star", "lead", "main player"),
        ("Who stars in {s}?", "Who has the leading role in {s}?", "Who is the star of {s}?"),
        bridge=True,
    ),
    Relation(
        "release_year",
        "film",
        "year",
        ("release year", "premiere year", "cinema year"),
        ("When was {s} released?", "In which year was {s} released?", "When did {s} reach the cinemas?"),
    ),
    Relation(
        "author",
        "book",
        "person",
        ("author", "writer", "book author"),
        ("Who wrote {s}?", "Who is the author of {s}?", "Whose work is the book {s}?"),
        bridge=True,
    ),
    Relation(
        "publication_year",
        "book",
        "year",
        ("publication year", "print year", "first edition year"),
        ("When was {s} published?", "In which year was {s} published?", "When was {s} first printed?"),
    ),
    Relation(
        "founder",
        "company",
        "person",
        ("founder", "creator", "first owner"),
        ("Who founded {s}?", "Who is the founder of {s}?", "Who started {s}?"),
        bridge=True,
    ),
    Relation(
        "seat",
        "company",
        "city",
        ("seat", "headquarters", "base"),
        ("Where is {s} based?", "In which city is {s} based?", "Where does {s} have its seat?"),
        bridge=True,
    ),
    Relation(
        "industry",
        "company",
        "industry",
        ("business", "industry", "line of work"),
        ("What is the business of {s}?", "What does {s} deal in?", "How does {s} make its money?"),
    ),
    Relation(
        "country",
        "city",
        "country",
        ("country", "land", "nation"),
        ("In which country is {s}?", "Which country does {s} belong to?", "Where does {s} lie?"),
    ),
    Relation(
        "mayor",
        "city",
        "person",
        ("mayor", "city head", "governor"),
        ("Who is the mayor of {s}?", "Who governs {s}?", "Who leads the town hall of {s}?"),
        bridge=True,
    ),
)

BY_NAME: dict[str, Relation] = {relation.name: relation for relation in RELATIONS}

CONCLUSION = "So the answer is {o}."
KNOWN = "Yes, I know: {o}."
UNKNOWN = "No, I don't know."
UNANSWERABLE = "unknown"
YES, NO = "yes", "no"

YES_NO_SAME = {
    "birthplace": "Were {a} and {b} born in the same city?",
    "employer": "Do {a} and {b} work for the same company?",
    "profession": "Do {a} and {b} have the same profession?",
    "country": "Are {a} and {b} in the same country?",
    "industry": "Do {a} and {b} have the same business?",
}
YES_NO_FACT = {
    "birthplace": "Was {s} born in {o}?",
    "director": "Was {s} directed by {o}?",
    "author": "Was {s} written by {o}?",
    "founder": "Was {s} founded by {o}?",
    "country": "Does {s} lie in {o}?",
}
COMPARISON = {
    "birth_year": ("Who was born earlier, {a} or {b}?", "Who is older, {a} or {b}?"),
    "release_year": ("Which film was released earlier, {a} or {b}?", "Which film is older, {a} or {b}?"),
    "publication_year": ("Which book was published earlier, {a} or {b}?", "Which book is older, {a} or {b}?"),
}

PROFESSIONS = (
    "engineer painter doctor teacher sailor baker lawyer farmer singer weaver printer chemist builder hunter judge miller"
).split()
INDUSTRIES = "ships clocks paper salt silk glass steel tea maps lamps wool bells".split()
YEARS = tuple(str(year) for year in range(1861, 1921))


def question_with(relation: Relation, subject: str, variant: int) -> str:
    """The ``variant``-th question asking ``relation`` of ``subject`` (a name, or the phrase of a first hop)."""
    text = relation.questions[variant % len(relation.questions)].format(s=subject)
    return text[0].upper() + text[1:]
