"""How the invented world speaks: its relations, with the sentences that state them and the questions that ask for them.

Everything the laboratory's texts are made of lives here, so that the tokenizer can collect its words from one place.
``{s}`` stands for the subject, ``{o}`` for the object. The first statement is the canonical one, which the model writes
when it reasons; passages use all of them. A relation with a ``phrase`` ("the director of {s}") can be the first hop of a
two-hop question.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Relation:
    """A kind of fact: subject type, object type, and its wordings."""

    name: str
    subject: str
    object: str
    statements: tuple[str, ...]
    questions: tuple[str, ...]
    phrase: str = ""
    before: str = ""
    """For year-valued relations: the word pattern of a comparison, e.g. "was born earlier"."""


RELATIONS: tuple[Relation, ...] = (
    Relation(
        "birthplace",
        "person",
        "city",
        ("{s} was born in {o}.", "{s} comes from {o}.", "{s} grew up in {o}.", "The birthplace of {s} is {o}."),
        ("Where was {s} born?", "In which city was {s} born?", "What is the birthplace of {s}?", "Which city does {s} come from?"),
    ),
    Relation(
        "birth_year",
        "person",
        "year",
        ("{s} was born in the year {o}.", "{s} entered the world in {o}.", "The birth of {s} was in {o}."),
        ("When was {s} born?", "In which year was {s} born?", "What is the birth year of {s}?"),
        before="was born earlier",
    ),
    Relation(
        "spouse",
        "person",
        "person",
        ("{s} is married to {o}.", "{s} is the partner of {o}.", "{s} shares a home with {o}."),
        ("Who is {s} married to?", "Who is the spouse of {s}?", "Who is the partner of {s}?"),
        phrase="the spouse of {s}",
    ),
    Relation(
        "employer",
        "person",
        "company",
        ("{s} works for {o}.", "{s} is employed by {o}.", "{s} has a post at {o}."),
        ("Which company does {s} work for?", "Who employs {s}?", "What is the employer of {s}?"),
        phrase="the employer of {s}",
    ),
    Relation(
        "profession",
        "person",
        "profession",
        ("The profession of {s} is {o}.", "{s} earns a living as {o}.", "By trade {s} is {o}."),
        ("What is the profession of {s}?", "What does {s} do for a living?", "Which trade does {s} follow?"),
    ),
    Relation(
        "director",
        "film",
        "person",
        ("{s} was directed by {o}.", "The film {s} was made by {o}.", "{s} is a film by {o}."),
        ("Who directed {s}?", "Who made the film {s}?", "Who is the director of {s}?"),
        phrase="the director of {s}",
    ),
    Relation(
        "star",
        "film",
        "person",
        ("The star of {s} is {o}.", "{s} has {o} in the leading role.", "The leading role of {s} went to {o}."),
        ("Who stars in {s}?", "Who has the leading role in {s}?", "Who is the star of {s}?"),
        phrase="the star of {s}",
    ),
    Relation(
        "release_year",
        "film",
        "year",
        ("{s} was released in {o}.", "{s} reached the cinemas in {o}.", "The first showing of {s} was in {o}."),
        ("When was {s} released?", "In which year was {s} released?", "When did {s} reach the cinemas?"),
        before="was released earlier",
    ),
    Relation(
        "author",
        "book",
        "person",
        ("{s} was written by {o}.", "The book {s} is the work of {o}.", "{s} came from the pen of {o}."),
        ("Who wrote {s}?", "Who is the author of {s}?", "Whose work is the book {s}?"),
        phrase="the author of {s}",
    ),
    Relation(
        "publication_year",
        "book",
        "year",
        ("{s} was published in {o}.", "{s} was first printed in {o}.", "Readers have known {s} since {o}."),
        ("When was {s} published?", "In which year was {s} published?", "When was {s} first printed?"),
        before="was published earlier",
    ),
    Relation(
        "founder",
        "company",
        "person",
        ("{s} was founded by {o}.", "{s} goes back to {o}.", "{s} owes its start to {o}."),
        ("Who founded {s}?", "Who is the founder of {s}?", "Who started {s}?"),
        phrase="the founder of {s}",
    ),
    Relation(
        "seat",
        "company",
        "city",
        ("{s} is based in {o}.", "{s} has its seat in {o}.", "The head office of {s} is in {o}."),
        ("Where is {s} based?", "In which city is {s} based?", "Where does {s} have its seat?"),
        phrase="the home city of {s}",
    ),
    Relation(
        "industry",
        "company",
        "industry",
        ("The business of {s} is {o}.", "{s} deals in {o}.", "{s} makes its money with {o}."),
        ("What is the business of {s}?", "What does {s} deal in?", "How does {s} make its money?"),
    ),
    Relation(
        "country",
        "city",
        "country",
        ("{s} lies in {o}.", "{s} is a city of {o}.", "{s} belongs to {o}."),
        ("In which country is {s}?", "Which country does {s} belong to?", "Where does {s} lie?"),
    ),
    Relation(
        "mayor",
        "city",
        "person",
        ("The mayor of {s} is {o}.", "{s} is governed by {o}.", "The town hall of {s} is led by {o}."),
        ("Who is the mayor of {s}?", "Who governs {s}?", "Who leads the town hall of {s}?"),
        phrase="the mayor of {s}",
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
    "engineer painter doctor teacher sailor baker lawyer farmer singer weaver printer chemist builder hunter judge miller".split()
)
INDUSTRIES = "ships clocks paper salt silk glass steel tea maps lamps wool bells".split()
YEARS = tuple(str(year) for year in range(1861, 1921))


def question_with(relation: Relation, subject: str, variant: int) -> str:
    """The ``variant``-th question asking ``relation`` of ``subject`` (a name, or the phrase of a first hop)."""
    text = relation.questions[variant % len(relation.questions)].format(s=subject)
    return text[0].upper() + text[1:]
