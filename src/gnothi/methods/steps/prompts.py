"""What models are asked to do: the tasks, with instructions and demonstrations for general models.

A model trained on a format of its own (the laboratory's) sees the task's name only. Demonstrations are the same for every
question, with and without passages, so that a backend can keep their prefix. All were written for this project: the ones
with passages are invented, so that only reading can answer them.
"""

from __future__ import annotations

from collections.abc import Sequence

from gnothi.errors import InvalidInput
from gnothi.signals.kinds.self_report import KNOW
from gnothi.types import Demonstration, Passage, Prompt, Question, Task

CONCLUSION = "So the answer is"


def _passage(title: str, text: str) -> Passage:
    return Passage("demonstration", text, title)


def _notes(*texts: str) -> tuple[Passage, ...]:
    return tuple(_passage("", text) for text in texts)


_SALT_TRAM = (
    _passage("Dunmere Salt Tram", "The Dunmere Salt Tram opened in 1902. It was planned by the engineer Odile Varr."),
    _passage("Odile Varr", "Odile Varr (1866-1931) was an engineer. She grew up on the island of Heskar."),
)
_LANTERN_FAIR = (
    _passage("Lantern Fair", "The Lantern Fair is held each autumn in Brackwater and draws glass blowers from the coast."),
    _passage("Glass in the north", "Brackwater lies on the river Ulm and has two glass works."),
    _passage("Ulm (film)", "Ulm is a silent film of 1924 about a ferryman."),
)
_CLOCKMAKERS = (
    _passage("Tomas Reill", "The clockmaker Tomas Reill was born on 3 March 1788 in Vennick."),
    _passage("Agathe Sorn", "Agathe Sorn, born in 1779, built the tower clock of Ostrava Bridge."),
)

REASON = Task(
    name="reason",
    instruction=(
        "Answer the question step by step. Write one short sentence per step and state one fact in each. "
        "Rely on the passages where there are any and on what you know where there are none. "
        f'End with a sentence of the form "{CONCLUSION} X.", where X is as short as possible.'
    ),
    demonstrations=(
        Demonstration(
            "In which country was the composer of the opera Carmen born?",
            "The opera Carmen was composed by Georges Bizet. Georges Bizet was born in Paris. Paris is in France. "
            "So the answer is France.",
        ),
        Demonstration(
            "On which island did the engineer who planned the Dunmere Salt Tram grow up?",
            "The Dunmere Salt Tram was planned by Odile Varr. Odile Varr grew up on the island of Heskar. "
            "So the answer is Heskar.",
            _SALT_TRAM,
        ),
        Demonstration(
            "Which is higher, Mont Blanc or Kilimanjaro?",
            "Mont Blanc is about 4,806 metres high. Kilimanjaro is about 5,895 metres high. 5,895 metres is more than "
            "4,806 metres. So the answer is Kilimanjaro.",
        ),
        Demonstration(
            "Which river flows past the town of the Lantern Fair?",
            "The Lantern Fair is held in Brackwater. Brackwater lies on the river Ulm. So the answer is the Ulm.",
            _LANTERN_FAIR,
        ),
        Demonstration(
            "Do the Danube and the Rhine flow into the same sea?",
            "The Danube flows into the Black Sea. The Rhine flows into the North Sea. The Black Sea and the North Sea are "
            "different seas. So the answer is no.",
        ),
        Demonstration(
            "Who was born first, Tomas Reill or Agathe Sorn?",
            "Tomas Reill was born in 1788. Agathe Sorn was born in 1779. 1779 is earlier than 1788. "
            "So the answer is Agathe Sorn.",
            _CLOCKMAKERS,
        ),
        Demonstration(
            "Which element, named after a planet, has the atomic number 92?",
            "The element with the atomic number 92 is uranium. Uranium is named after the planet Uranus. "
            "So the answer is uranium.",
            choices=("neptunium", "uranium", "plutonium"),
        ),
        Demonstration(
            "What is the currency of the country whose capital is Budapest?",
            "Budapest is the capital of Hungary. The currency of Hungary is the forint. So the answer is the forint.",
        ),
    ),
)

STEP_BY_STEP = Task(
    # Zero-shot (Kojima et al. 2022): a model with a format of its own is asked as ever.
    name="reason",
    instruction=(
        "Answer the question. Think step by step before you answer: one short sentence per step, with one fact in each. "
        f'When you are done, end with a sentence of the form "{CONCLUSION} X.", where X is as short as possible.'
    ),
)

ANSWER = Task(
    name="answer",
    instruction=(
        "Answer the question with the answer alone: a name, a date, a number or yes or no, and nothing else. "
        "Rely on the passages where there are any and on what you know where there are none."
    ),
    demonstrations=(
        Demonstration("Which metal is liquid at room temperature?", "mercury"),
        Demonstration("On which island did the engineer who planned the Dunmere Salt Tram grow up?", "Heskar", _SALT_TRAM),
        Demonstration("Is the Pacific larger than the Atlantic?", "yes"),
        Demonstration("Which river flows past the town of the Lantern Fair?", "the Ulm", _LANTERN_FAIR),
        Demonstration("Which planet has the shortest year?", "Mercury", choices=("Venus", "Mercury", "Mars")),
        Demonstration("Who was born first, Tomas Reill or Agathe Sorn?", "Agathe Sorn", _CLOCKMAKERS),
    ),
)

DECOMPOSE = Task(
    name="decompose",
    instruction=(
        "Split the question into the simpler questions that lead to its answer, one per line and numbered. "
        "Write #1 for the answer to the first of them, #2 for that to the second, and so on. "
        "A question that needs no splitting stays as it is."
    ),
    demonstrations=(
        Demonstration(
            "In which country was the composer of the opera Carmen born?",
            "1. Who composed the opera Carmen?\n2. In which country was #1 born?",
        ),
        Demonstration(
            "Which is higher, Mont Blanc or Kilimanjaro?",
            "1. How high is Mont Blanc?\n2. How high is Kilimanjaro?\n"
            "3. Which is higher, Mont Blanc with #1 or Kilimanjaro with #2?",
        ),
        Demonstration("Which metal is liquid at room temperature?", "1. Which metal is liquid at room temperature?"),
        Demonstration(
            "When did the wife of the founder of the Tarn Hollow mill die?",
            "1. Who founded the Tarn Hollow mill?\n2. Who was the wife of #1?\n3. When did #2 die?",
        ),
        Demonstration(
            "Could Mozart have taken a train from Vienna to Prague?",
            "1. When did Mozart die?\n2. When did trains first run from Vienna to Prague?\n3. Is #1 later than #2?",
        ),
    ),
)

EQUIVALENT = Task(
    name="equivalent",
    instruction='Say whether the two answers to the question mean the same. Reply "Yes" or "No".',
    demonstrations=(
        Demonstration("Who wrote Hamlet?", "Yes", choices=("Shakespeare", "William Shakespeare")),
        Demonstration("When did the First World War end?", "Yes", choices=("11 November 1918", "in November 1918")),
        Demonstration("Which river flows through Vienna?", "No", choices=("the Danube", "the Rhine")),
        Demonstration("How many moons does Mars have?", "No", choices=("2", "12")),
    ),
)

USEFUL = Task(
    name="useful",
    instruction='Say whether the passage helps to answer the question. Reply "Yes" or "No".',
    demonstrations=(
        Demonstration("Who planned the Dunmere Salt Tram?", "Yes", (_SALT_TRAM[0],)),
        Demonstration("Which river flows through Brackwater?", "No", (_LANTERN_FAIR[2],)),
        Demonstration("Which river flows through Brackwater?", "Yes", (_LANTERN_FAIR[1],)),
        Demonstration("When did Tomas Reill die?", "No", (_CLOCKMAKERS[0],)),
    ),
)

ANSWER_YES_NO = Task(
    name="answer",
    instruction=(
        'Answer the question with "yes" or "no" and nothing else. '
        "Rely on the passages where there are any and on what you know where there are none. "
        "Where you are not sure, say what is likelier."
    ),
    demonstrations=(
        Demonstration("Is the Pacific larger than the Atlantic?", "yes"),
        Demonstration("Did Odile Varr grow up on the mainland?", "no", _SALT_TRAM),
        Demonstration("Could Julius Caesar have drunk coffee from America?", "no"),
        Demonstration("Is there a river near the Lantern Fair?", "yes", _LANTERN_FAIR),
    ),
)

SUMMARISE = Task(
    # A chain of thought over notes: a model with a format of its own needs no other one for it.
    name="reason",
    instruction=(
        "Answer the question from the notes, which hold smaller questions and what was found out about each. "
        "Put the notes together step by step, in one short sentence per step; a note may be incomplete or wrong. "
        f'End with a sentence of the form "{CONCLUSION} X.", where X is as short as possible.'
    ),
    demonstrations=(
        Demonstration(
            "In which country was the composer of the opera Carmen born?",
            "The opera Carmen was composed by Georges Bizet. Georges Bizet was born in Paris, which is in France. "
            "So the answer is France.",
            _notes("The opera Carmen was composed by Georges Bizet.", "In which country was Georges Bizet born? France"),
        ),
        Demonstration(
            "Who was born first, Tomas Reill or Agathe Sorn?",
            "Tomas Reill was born on 3 March 1788. Agathe Sorn was born in 1779. 1779 is earlier than 1788. "
            "So the answer is Agathe Sorn.",
            _notes("When was Tomas Reill born? 3 March 1788", "Agathe Sorn was born in 1779."),
        ),
        Demonstration(
            "Which river flows past the town of the Lantern Fair?",
            "The Lantern Fair is held in Brackwater. Brackwater lies on the river Ulm. So the answer is the Ulm.",
            _notes("In which town is the Lantern Fair held? Brackwater", "Which river flows past Brackwater? the Ulm"),
        ),
    ),
)

SUMMARISE_YES_NO = Task(
    name="reason",
    instruction=(
        "Answer the question by yes or no from the notes, which hold smaller questions and what was found out about each. "
        "Put the notes together step by step, in one short sentence per step; a note may be incomplete or wrong. "
        f'End with "{CONCLUSION} yes." or "{CONCLUSION} no."; where the notes leave it open, say what is likelier.'
    ),
    demonstrations=(
        Demonstration(
            "Do the Danube and the Rhine flow into the same sea?",
            "The Danube flows into the Black Sea. The Rhine flows into the North Sea. These are different seas. "
            "So the answer is no.",
            _notes("Into which sea does the Danube flow? the Black Sea", "The Rhine flows into the North Sea."),
        ),
        Demonstration(
            "Could Agathe Sorn have read a letter by Tomas Reill?",
            "Agathe Sorn lived from 1779 to 1851. Tomas Reill was born in 1788. He could write before 1851. "
            "So the answer is yes.",
            _notes("When did Agathe Sorn live? from 1779 to 1851", "When was Tomas Reill born? 3 March 1788"),
        ),
    ),
)

DESCRIBE = Task(
    name="describe",
    instruction="Tell what you know about this subject in one to three short sentences.",
    demonstrations=(
        Demonstration(
            "Georges Bizet",
            "Georges Bizet was a French composer. He was born in Paris in 1838. He wrote the opera Carmen.",
        ),
        Demonstration("the Danube", "The Danube is a river in Europe. It rises in Germany and flows into the Black Sea."),
    ),
)

KNOWLEDGE = Task(
    # Asked of a question instead of a thing: a model with a format of its own knows no other task that tells something.
    name="describe",
    instruction="State one general fact, in one sentence, that helps to answer the question. Do not answer it.",
    demonstrations=(
        Demonstration(
            "Which of these would keep soup warm longest?",
            "A vacuum between two walls hardly conducts heat.",
            choices=("a paper cup", "a vacuum flask", "a tin"),
        ),
        Demonstration(
            "In which country was the composer of the opera Carmen born?",
            "The opera Carmen was composed by Georges Bizet, a Frenchman.",
        ),
        Demonstration("Can a whale drown?", "Whales are mammals and breathe air with lungs."),
        Demonstration(
            "Where would a fox look for hens?",
            "Hens are kept in a coop on a farm, and foxes prey on them.",
            choices=("a harbour", "a coop", "a chimney"),
        ),
        Demonstration("Which planet has the shortest year?", "The nearer a planet is to the Sun, the shorter is its year."),
    ),
)

REVISE = Task(
    name="revise",
    instruction=(
        "The first passage is a draft that was written from memory and may be wrong; the other passages are facts. "
        "Write the draft again so that it agrees with the facts: correct what they contradict, keep what they do not mention, "
        "and add nothing that does not help to answer the question. Reply with the new draft alone."
    ),
    demonstrations=(
        Demonstration(
            "On which island did the engineer who planned the Dunmere Salt Tram grow up?",
            "The Dunmere Salt Tram opened in 1902. It was planned by Odile Varr. Odile Varr grew up on the island of Heskar.",
            (
                _passage(
                    "Draft",
                    "The Dunmere Salt Tram opened in 1902. It was planned by Hugo Lenn. Odile Varr grew up on the mainland.",
                ),
                _passage("", "The engineer of the Dunmere Salt Tram was Odile Varr."),
                _passage("", "Odile Varr grew up on Heskar, an island."),
            ),
        ),
        Demonstration(
            "Which river flows past the town of the Lantern Fair?",
            "The Lantern Fair is held in Brackwater. Brackwater lies on a river.",
            (
                _passage("Draft", "The Lantern Fair is held in Brackwater. Brackwater lies on a river."),
                _passage("", "Brackwater has two glass works."),
            ),
        ),
    ),
)

TASKS = {task.name: task for task in (REASON, ANSWER, KNOW, DECOMPOSE, EQUIVALENT, USEFUL, DESCRIBE, REVISE)}


def reasoning(demonstrations: bool) -> Task:
    """Chain of thought with worked examples, or with an instruction alone."""
    return REASON if demonstrations else STEP_BY_STEP


def require_text(question: Question) -> None:
    """Raise InvalidInput for a blank question: nothing can be searched for or answered."""
    if not question.text.strip():
        raise InvalidInput(f"question {question.id!r}: got no text, expected a question.")


def ask(task: Task, question: Question, passages: Sequence[Passage] = (), so_far: str = "") -> Prompt:
    """The prompt of ``task`` about ``question``, with the reply as it stands. Raises InvalidInput for a blank question."""
    require_text(question)
    return Prompt(task, question.text, tuple(passages), question.choices, so_far)
