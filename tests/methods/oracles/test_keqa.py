"""What KEQA reads out of replies, against its authors' (l-xin/KEQA: ``decomp.py``, ``infer.py``, ``group.py``, ``utils.py``).

Left out, because there we differ and say so (docs/papers/keqa.md): lines that are no items of a list, lists that cannot be
used, answers of several sentences, chains without a conclusion, a judge that says both yes and no, and which of equally large
groups guesses.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pytest

from gnothi.methods.steps.parsing import read_reply
from gnothi.methods.steps.quizzes import Solved, ask_in_order, parse_quizzes
from gnothi.signals.assessment import Assessment, Consensus
from gnothi.signals.replies import normalized, reply_says_yes
from gnothi.testing.model import Scripted
from gnothi.types import Decoding, Generation, Prompt, Samples, Task
from tests.methods.oracles.authors import CASES, module

QUESTION = "Where was the director of Velkarra born?"
NAMES = ("Mira Tolven", "the Amber Line", "J. R. R. Vesk", "3.5 km", "12 May 1902", "A Town", "yes", "O'Brien")
YES = ("Yes", "yes.", "Yes, they do.", "Sure! Yes", "The result is yes.", "YES")
NO = ("No", "no.", "No, they differ.", "I am sure: no", "They are other towns.", "")


@cache
def authors(name: str) -> Any:
    """A file of theirs, with those that it imports."""
    utils = module("l-xin/KEQA", "src/utils.py")
    stubs: dict[str, Mapping[str, Any]] = {"utils": vars(utils)}
    stubs |= {"qa": dict.fromkeys(("quiz", "rag", "rag_summarize")), "group": {"group": None}}
    stubs["robust_retrieve"] = {"robust_retrieve": None}
    return utils if name == "utils" else module("l-xin/KEQA", f"src/{name}.py", stubs)


def differing(ours: Callable[[int], object], theirs: Callable[[int], object]) -> list[int]:
    return [seed for seed in range(CASES) if ours(seed) != theirs(seed)]


# --- lists and references ----------------------------------------------------------------------------------------------


def reply_of(seed: int) -> str:
    draw = random.Random(seed)
    lines = []
    for number in range(1, draw.randint(1, 9) + 1):
        about = f"#{draw.randint(1, number - 1)}" if number > 1 and draw.random() < 0.5 else draw.choice(NAMES)
        gap = draw.choice([". ", ".", " . ", ".  "])
        lines.append(draw.choice(["", " "]) + f"{number}{gap}Which thing {draw.getrandbits(30)} made {about}?")
    return draw.choice(["\n", "\n\n"]).join(lines) + draw.choice(["", "\n"])


def listed(reply: str) -> list[str]:
    """What stands behind number and full stop on each line."""
    return [re.split(r"\d+\s*\.", line, maxsplit=1)[1].strip() for line in reply.splitlines() if line.strip()]


def filled(seed: int) -> list[tuple[str, str]]:
    """The quizzes as they are asked, each with its answer."""
    asked: list[tuple[str, str]] = []
    for quiz in listed(reply_of(seed)):
        text = re.sub(r"#(\d)", lambda found: asked[int(found[1]) - 1][1], quiz)
        asked.append((text, answer_to(text)))
    return asked


def answer_to(quiz: str) -> str:
    return random.Random(quiz).choice(NAMES)


def test_lists() -> None:
    def ours(seed: int) -> list[str]:
        return [quiz.text for quiz in parse_quizzes(reply_of(seed), QUESTION, 20)]

    assert differing(ours, lambda seed: listed(reply_of(seed))) == []
    decompose = authors("decomp").decompose
    assert differing(ours, lambda seed: decompose(QUESTION, lambda _, **__: reply_of(seed))) == []


@pytest.mark.slow
def test_references() -> None:
    async def solve(text: str) -> Solved:
        return Solved(text, answer_to(text), "memory")

    def ours(seed: int) -> list[tuple[str, str]]:
        solved = asyncio.run(ask_in_order(parse_quizzes(reply_of(seed), QUESTION, 20), solve))
        return [(one.question, one.answer) for one in solved]

    assert differing(ours, filled) == []
    theirs = authors("infer")
    theirs.quiz = lambda text, *_, **__: (answer_to(text), "")
    theirs.group = lambda _, answers, *__, **___: (answers[0], [answers], [])
    theirs.rag_summarize = lambda *_, **__: ("", "")

    def asked(seed: int) -> list[tuple[str, str]]:
        _, found = theirs.infer(QUESTION, listed(reply_of(seed)), None, None, None, None, 1, 1, 0, 0, 0)
        return [(one["subq"], one["answer"]) for one in found["subqa"]]

    assert differing(ours, asked) == []


# --- answers, and what a judge says ------------------------------------------------------------------------------------


def test_short_answers() -> None:
    def reply(seed: int) -> str:
        draw = random.Random(seed)
        first = draw.choice(NAMES) + draw.choice(["", ".", " "])
        return draw.choice(["", "\n", " \n\n"]) + first + draw.choice(["", "\nAnd so on.", "\n\nQuestion: Who?"])

    def ours(seed: int) -> str:
        return normalized(read_reply(reply(seed)).answer)

    assert differing(ours, lambda seed: normalized(reply(seed).strip().splitlines()[0])) == []
    first_line = authors("utils").get_first_line
    assert differing(ours, lambda seed: normalized(first_line(reply(seed)))) == []


def test_conclusions() -> None:
    def reply(seed: int) -> str:
        draw = random.Random(seed)
        chain = [f"It has {draw.getrandbits(20)} of {draw.choice(NAMES)}." for _ in range(draw.randint(0, 3))]
        marker = draw.choice(["So the answer is ", "Thus, the answer is: ", "the answer is "])
        chain.append(marker + draw.choice(NAMES) + draw.choice(["", "."]))
        return draw.choice([" ", "\n", "\n\n"]).join(chain) + draw.choice(["", "\n", "\nSo the answer is Ulm."])

    def ours(seed: int) -> str:
        return normalized(read_reply(reply(seed)).conclusion)

    def restated(seed: int) -> str:
        (line, *_) = (line for line in reply(seed).splitlines() if "answer is" in line)
        return normalized(line.partition("answer is")[2])

    assert differing(ours, restated) == []
    extract = authors("utils").extract_answer
    assert differing(ours, lambda seed: normalized(extract(reply(seed)))) == []


# --- agreement ---------------------------------------------------------------------------------------------------------

MEANINGS = {"Ulm": ("Ulm", "ulm.", "The city of Ulm"), "1902": ("1902", "in 1902"), "Vesk": ("Vesk", "Vesk, Orvel")}
OF = {answer: meaning for meaning, answers in MEANINGS.items() for answer in answers}


def tries(seed: int) -> tuple[list[str], int]:
    """Answers, and how many have to agree."""
    draw = random.Random(seed)
    weights = [draw.random() ** 3 for _ in OF] + [0.1]
    answers = draw.choices([*OF, "unknown"], weights, k=draw.randint(3, 8))
    return answers, draw.randint(len(answers) // 2 + 1, len(answers))


def verdict(one: str, other: str) -> str:
    """What the judge says of two answers, in some form."""
    draw = random.Random(str(sorted((one, other))))
    return draw.choice(YES if OF[one] == OF[other] else NO)


Agreement = tuple[bool, str | None]
"""Whether it is known, and what is meant (None: undecided between several)."""


def agreement(known: bool, answer: str, seed: int) -> Agreement:
    answers, _ = tries(seed)
    counts = sorted([sum(OF.get(one) == meaning for one in answers) for meaning in MEANINGS], reverse=True)
    return known, OF.get(answer) if known or counts[0] > counts[1] else None


def judged(seed: int) -> Agreement:
    answers, enough = tries(seed)

    class Saying(Scripted):
        async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Any = ()) -> Samples:  # noqa: ARG002
            return Samples(tuple(Generation(one) for one in answers))

    async def same(_: str, one: str, other: str) -> bool:
        return normalized(one) == normalized(other) or reply_says_yes(verdict(one, other))

    asking = Assessment(same, str, len(answers), enough / len(answers), "at_once")
    found: Consensus = asyncio.run(asking(Saying({}), Prompt(Task("answer"), "Who?"), Decoding(temperature=1.0)))
    return agreement(found.known, found.answer, seed)


def counted(seed: int) -> Agreement:
    answers, enough = tries(seed)
    best = max(MEANINGS, key=lambda meaning: sum(OF.get(one) == meaning for one in answers))
    count = sum(OF.get(one) == best for one in answers)
    return agreement(count >= enough, best if count else "", seed)


@pytest.mark.slow
def test_agreement() -> None:
    assert differing(judged, counted) == []
    group = authors("group").group

    def compared(prompt: str, **_: object) -> str:
        one, other = re.findall(r"Answer \d: (.*)", prompt)
        return verdict(one, other)

    def theirs(seed: int) -> Agreement:
        answers, enough = tries(seed)
        agreed, groups, _ = group("Who?", answers, compared, enough)
        return agreement(agreed is not None, agreed or (groups[0][0] if groups else ""), seed)

    assert [seed for seed in range(CASES) if judged(seed)[0] != theirs(seed)[0]] == []
    assert [seed for seed in range(CASES) if theirs(seed)[0] and judged(seed) != theirs(seed)] == []


def test_verdicts_of_judges() -> None:
    compare = authors("group").compare
    for said in (*YES, *NO):
        assert reply_says_yes(said) == (said in YES)
        assert compare("Who?", "Ulm", "Vesk", lambda _, said=said, **__: said)[0] == (said in YES)
