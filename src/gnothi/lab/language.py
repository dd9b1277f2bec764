"""How the invented world speaks: its relations, with the sentences that state them and the questions that ask for them.

Everything the laboratory's texts are made of lives here, so that the tokenizer can collect its words from one place.
``{s}`` stands for the subject, ``{o}`` for the object. The first statement is the canonical one, which the model writes
when it reasons; passages use all of them. Statements end in ``of {s} is {o}.``: the subject stands two tokens before the
object, where a small model's positional heads find it (``docs/lab.md`` tells what happened with freer wordings). A relation
with a ``phrase`` ("the director of {s}") can be the first hop of a two-hop question.
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


RELATIONS: tuple[Relation, ...] = (
    Relation(
        "birthplace",
        "person",
        "city",
        (
            "The birthplace of {s} is {o}.",
            "The hometown of {s} is {o}.",
            "The origin of {s} is {o}.",
            "The birthplace of {s} was {o}.",
            "The hometown of {s} was {o}.",
        ),
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
        (
            "The birth year of {s} is {o}.",
            "The year of birth of {s} is {o}.",
            "The first year of {s} is {o}.",
            "The birth year of {s} was {o}.",
            "The year of birth of {s} was {o}.",
        ),
        ("When was {s} born?", "In which year was {s} born?", "What is the birth year of {s}?"),
    ),
    Relation(
        "spouse",
        "person",
        "person",
        (
            "The spouse of {s} is {o}.",
            "The partner of {s} is {o}.",
            "The consort of {s} is {o}.",
            "The spouse of {s} was {o}.",
            "The partner of {s} was {o}.",
        ),
        ("Who is {s} married to?", "Who is the spouse of {s}?", "Who is the partner of {s}?"),
        phrase="the spouse of {s}",
    ),
    Relation(
        "employer",
        "person",
        "company",
        (
            "The employer of {s} is {o}.",
            "The company of {s} is {o}.",
            "The workplace of {s} is {o}.",
            "The employer of {s} was {o}.",
            "The company of {s} was {o}.",
        ),
        ("Which company does {s} work for?", "Who employs {s}?", "What is the employer of {s}?"),
        phrase="the employer of {s}",
    ),
    Relation(
        "profession",
        "person",
        "profession",
        (
            "The profession of {s} is {o}.",
            "The trade of {s} is {o}.",
            "The calling of {s} is {o}.",
            "The profession of {s} was {o}.",
            "The trade of {s} was {o}.",
        ),
        ("What is the profession of {s}?", "What does {s} do for a living?", "Which trade does {s} follow?"),
    ),
    Relation(
        "director",
        "film",
        "person",
        (
            "The director of {s} is {o}.",
            "The maker of {s} is {o}.",
            "The film director of {s} is {o}.",
            "The director of {s} was {o}.",
            "The maker of {s} was {o}.",
        ),
        ("Who directed {s}?", "Who made the film {s}?", "Who is the director of {s}?"),
        phrase="the director of {s}",
    ),
    Relation(
        "star",
        "film",
        "person",
        (
            "The star of {s} is {o}.",
            "The lead of {s} is {o}.",
            "The main player of {s} is {o}.",
            "The star of {s} was {o}.",
            "The lead of {s} was {o}.",
        ),
        ("Who stars in {s}?", "Who has the leading role in {s}?", "Who is the star of {s}?"),
        phrase="the star of {s}",
    ),
    Relation(
        "release_year",
        "film",
        "year",
        (
            "The release year of {s} is {o}.",
            "The premiere year of {s} is {o}.",
            "The cinema year of {s} is {o}.",
            "The release year of {s} was {o}.",
            "The premiere year of {s} was {o}.",
        ),
        ("When was {s} released?", "In which year was {s} released?", "When did {s} reach the cinemas?"),
    ),
    Relation(
        "author",
        "book",
        "person",
        (
            "The author of {s} is {o}.",
            "The writer of {s} is {o}.",
            "The book author of {s} is {o}.",
            "The author of {s} was {o}.",
            "The writer of {s} was {o}.",
        ),
        ("Who wrote {s}?", "Who is the author of {s}?", "Whose work is the book {s}?"),
        phrase="the author of {s}",
    ),
    Relation(
        "publication_year",
        "book",
        "year",
        (
            "The publication year of {s} is {o}.",
            "The print year of {s} is {o}.",
            "The first edition year of {s} is {o}.",
            "The publication year of {s} was {o}.",
            "The print year of {s} was {o}.",
        ),
        ("When was {s} published?", "In which year was {s} published?", "When was {s} first printed?"),
    ),
    Relation(
        "founder",
        "company",
        "person",
        (
            "The founder of {s} is {o}.",
            "The creator of {s} is {o}.",
            "The first owner of {s} is {o}.",
            "The founder of {s} was {o}.",
            "The creator of {s} was {o}.",
        ),
        ("Who founded {s}?", "Who is the founder of {s}?", "Who started {s}?"),
        phrase="the founder of {s}",
    ),
    Relation(
        "seat",
        "company",
        "city",
        (
            "The seat of {s} is {o}.",
            "The headquarters of {s} is {o}.",
            "The base of {s} is {o}.",
            "The seat of {s} was {o}.",
            "The headquarters of {s} was {o}.",
        ),
        ("Where is {s} based?", "In which city is {s} based?", "Where does {s} have its seat?"),
        phrase="the seat of {s}",
    ),
    Relation(
        "industry",
        "company",
        "industry",
        (
            "The business of {s} is {o}.",
            "The industry of {s} is {o}.",
            "The line of work of {s} is {o}.",
            "The business of {s} was {o}.",
            "The industry of {s} was {o}.",
        ),
        ("What is the business of {s}?", "What does {s} deal in?", "How does {s} make its money?"),
    ),
    Relation(
        "country",
        "city",
        "country",
        (
            "The country of {s} is {o}.",
            "The land of {s} is {o}.",
            "The nation of {s} is {o}.",
            "The country of {s} was {o}.",
            "The land of {s} was {o}.",
        ),
        ("In which country is {s}?", "Which country does {s} belong to?", "Where does {s} lie?"),
    ),
    Relation(
        "mayor",
        "city",
        "person",
        (
            "The mayor of {s} is {o}.",
            "The city head of {s} is {o}.",
            "The governor of {s} is {o}.",
            "The mayor of {s} was {o}.",
            "The city head of {s} was {o}.",
        ),
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
    "engineer painter doctor teacher sailor baker lawyer farmer singer weaver printer chemist builder hunter judge miller"
).split()
INDUSTRIES = "ships clocks paper salt silk glass steel tea maps lamps wool bells".split()
YEARS = tuple(str(year) for year in range(1861, 1921))


def question_with(relation: Relation, subject: str, variant: int) -> str:
    """The ``variant``-th question asking ``relation`` of ``subject`` (a name, or the phrase of a first hop)."""
    text = relation.questions[variant % len(relation.questions)].format(s=subject)
    return text[0].upper() + text[1:]
