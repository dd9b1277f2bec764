"""Small data sets of our own making in the shape of the real ones (shared/data), under the same names: all is invented.

What is known of them by how they are made stands beside each; tests count on it. ``tests/datasets/test_records.py`` holds the
shapes against the real files, where those are.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

QUESTIONS = 25
"""Of each data set but PopQA's and the recorded ones."""
ENTITIES = 40
"""Of PopQA's questions."""
RECORDED = 200
"""Questions of each file of recorded outcomes. Of ten, memory is right on 0, 1, 2, 5, 6 and 7, evidence on the even ones."""
NEVER, ALWAYS, EITHER = 0.6, 0.5, 0.8
PASSAGES = ENTITIES + 3 * QUESTIONS + 6
"""Different ones in the files that the benchmark on real text takes passages from."""

Item = dict[str, Any]
TRADES = ("baker", "potter", "glazier", "weaver", "cooper")


def town(number: int) -> str:
    """A word that no other number has."""
    return "".join("bdfgk"[int(digit) % 5] + "aeiou"[int(digit) // 2] for digit in f"{number:03}").capitalize() + "ton"


def passage(number: int) -> Item:
    return {"title": f"River {number}", "text": f"River {number} springs near {town(number)} and is {number + 3} km long."}


def popqa() -> list[Item]:
    def item(number: int) -> Item:
        trade = TRADES[number % 5]
        return {
            "id": number,
            "subj": f"Ann {town(number)}",
            "prop": "occupation",
            "obj": trade,
            "subj_id": number,
            "prop_id": 22,
            "obj_id": number % 5,
            "s_aliases": "[]",
            "o_aliases": json.dumps([f"master {trade}"]),
            "s_uri": f"http://example.org/Q{number}",
            "o_uri": f"http://example.org/P{number % 5}",
            "s_wiki_title": f"Ann {town(number)}",
            "o_wiki_title": trade.title(),
            "s_pop": 100 + number,
            "o_pop": 1000,
            "question": f"What is Ann {town(number)}'s occupation?",
            "possible_answers": json.dumps([trade, f"master {trade}"]),
            "paragraphs": [
                {"title": f"Ann {town(number)}", "text": f"Ann {town(number)} is a {trade}.", "is_supporting": True},
                {"title": trade.title(), "text": f"A {trade} works by hand.", "is_supporting": False},
            ],
        }

    return [item(number) for number in range(ENTITIES)]


def xquad() -> Item:
    def article(first: int) -> Item:
        paragraphs = [
            {
                "context": passage(number)["text"],
                "qas": [
                    {
                        "id": f"x{number}",
                        "question": f"Near what does river {number} spring?",
                        "answers": [{"answer_start": passage(number)["text"].index(town(number)), "text": town(number)}],
                    }
                ],
            }
            for number in range(first, min(first + 5, 100 + QUESTIONS))
        ]
        return {"title": f"Rivers_from_{first}", "paragraphs": paragraphs}

    return {"version": "1.1", "data": [article(first) for first in range(100, 100 + QUESTIONS, 5)]}


def hops(first: int, **more: str) -> list[Item]:
    """Two passages support an answer: their own one, and one that all share; a third supports nothing."""
    common = {"title": "Springs", "text": "Where a river springs there is a town."}
    return [
        {
            "id": f"h{number}",
            "question": f"Near which town does river {number} spring?",
            "answers": ["yes" if number % 10 == 0 else town(number)],
            **more,
            "passages": [
                passage(number) | {"supporting": True},
                common | {"supporting": True},
                passage(first + (number + 1) % QUESTIONS) | {"supporting": False},
            ],
        }
        for number in range(first, first + QUESTIONS)
    ]


def truthfulqa() -> list[Item]:
    return [
        {
            "Type": "Adversarial" if number % 2 else "Non-Adversarial",
            "Category": f"Category {number % 5}",
            "Question": f"What does river {number} carry?",
            "Best Answer": "River water",
            "Correct Answers": f"River water; Water of river {number}",
            "Incorrect Answers": f"Gold dust; Silver of {town(number)}",
            "Source": "https://example.org",
        }
        for number in range(QUESTIONS)
    ]


def strategyqa(first: int) -> list[Item]:
    return [
        {
            "qid": f"s{number}",
            "term": f"River {number}",
            "description": "an invented river",
            "question": f"Is river {number} longer than river 7?",
            "answer": number % 3 == 0,
            "facts": [f"River {number} is {number + 3} km long.", "River 7 is 10 km long."],
            "decomposition": [f"How long is river {number}?", "Is #1 more than 10 km?"],
            "evidence": [[[[f"River {number}-1", "River 7-2"]], ["operation"]], [["no_evidence"], ["operation"]]],
        }
        for number in range(first, first + QUESTIONS)
    ]


def selfaware() -> Item:
    """Four of five can be answered, all of these first."""
    known = [
        {
            "question_id": number,
            "question": f"Where does river {number} spring?",
            "answer": [town(number)],
            "answerable": True,
            "source": "made",
        }
        for number in range(1, 21)
    ]
    unknown = [
        {"question_id": number, "question": f"Why is {number}?", "answer": None, "answerable": False, "source": "made"}
        for number in range(21, 26)
    ]
    told = {"dataset_name": "Made", "quantity": 20, "description": "", "license": "", "keywords": [], "metrics": []}
    return {**told, "example": [*known, *unknown]}


def chosen(number: int) -> tuple[str, str]:
    """The right choice of a question by its label and its text."""
    return "ABCD"[number % 4], options(number)[number % 4]


def options(number: int) -> list[str]:
    return [f"a {trade}, {number + place} years old" for place, trade in enumerate(TRADES[:4])]


def commonsenseqa() -> list[Item]:
    def item(number: int) -> Item:
        texts = [*options(number), "a glover"]
        choices = {"label": list("ABCDE"), "text": texts}
        question = {"id": f"c{number}", "question": f"Who lives near river {number}?", "question_concept": "live"}
        return {**question, "choices": choices, "answerKey": chosen(number)[0]}

    return [item(number) for number in range(QUESTIONS)]


def openbookqa() -> list[Item]:
    def item(number: int) -> Item:
        choices = [{"text": text, "label": label} for label, text in zip("ABCD", options(number), strict=True)]
        stem = {"stem": f"At number {number} lives", "choices": choices}
        return {"id": f"o{number}", "question": stem, "answerKey": chosen(number)[0]}

    return [item(number) for number in range(QUESTIONS)]


def medqa() -> list[Item]:
    return [
        {
            "question": f"Who lives at number {number}?",
            "answer": chosen(number)[1],
            "options": dict(zip("ABCD", options(number), strict=True)),
            "meta_info": "step1",
            "answer_idx": chosen(number)[0],
            "metamap_phrases": ["number"],
        }
        for number in range(QUESTIONS)
    ]


def nq_open() -> list[Item]:
    return [
        {"question": f"where does river {number} spring", "answer": [town(number), f"near {town(number)}"]}
        for number in range(QUESTIONS)
    ]


def memory_right(number: int) -> bool:
    return number % 5 < 3


def evidence_right(number: int) -> bool:
    return number % 2 == 0


def outcomes(name: str, part: str) -> list[Item]:
    """The first doubt tells memory's mistakes but for some, the energy says the same the other way round, the rest nothing."""
    first = {"dev": 0, "test": RECORDED}[part]

    def item(number: int) -> Item:
        line: Item
        right, doubt = memory_right(number), number * 37 % 100 / 100
        said = town(number) if right else "Nowhere"
        found = town(number) if evidence_right(number) else "I don't know"
        line = {"id": f"{name}{number}", "question": f"Near which town does river {number} spring?", "answers": [town(number)]}
        line |= {"no_retrieval": said, "one_retrieval": found, "multi_retrieval": found}
        if part == "test":
            line["multi_retrieval_steps"] = 2 + number % 2
        if part == "test" and name in ("nq", "trivia"):
            perplexity = 1 + doubt + (0 if right else 0.7)
            line["direct"] = {"answer": said.lower(), "perplexity": perplexity, "energy_score": 20 - perplexity}
            line["direct"] |= {"ln_entropy": 1 + number * 53 % 100 / 100, "eigen_score": number * 71 % 100 / 50 - 1.01}
        return line

    return [item(number) for number in range(first, first + RECORDED)]


def conceptnet() -> list[str]:
    """Those of even numbers are false."""
    return [f"AtLocation\ttown {number}\triver {number}\t{number % 2}" for number in range(2 * QUESTIONS)]


def write(folder: Path) -> Path:
    def lines(name: str, items: Iterable[Mapping[str, Any]]) -> None:
        (folder / name).write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")

    (folder / "recorded").mkdir(parents=True)
    whole = {"popqa.json": popqa(), "xquad.en.json": xquad(), "selfaware.json": selfaware()}
    whole |= {"strategyqa.train.json": strategyqa(0), "strategyqa.dev.json": strategyqa(100)}
    whole |= {"2wikimultihopqa_corpus.json": [passage(number) for number in range(300, 300 + QUESTIONS)]}
    for name, document in whole.items():
        (folder / name).write_text(json.dumps(document, indent=1), encoding="utf-8")
    lines("hotpotqa.jsonl", hops(200, type="bridge", level="hard"))
    lines("2wikimultihopqa.jsonl", hops(300))
    lines("nq_open.dev.jsonl", nq_open())
    lines("commonsenseqa.dev.jsonl", commonsenseqa())
    lines("openbookqa.test.jsonl", openbookqa())
    lines("medqa.test.jsonl", medqa())
    for name in ("nq", "trivia", "hotpotqa", "2wikimultihopqa"):
        for part in ("dev", "test"):
            lines(f"recorded/{name}.{part}.jsonl", outcomes(name, part))
    with (folder / "truthfulqa.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(truthfulqa()[0]))
        writer.writeheader()
        writer.writerows(truthfulqa())
    (folder / "conceptnet.tsv").write_text("\n".join(conceptnet()) + "\n", encoding="utf-8")
    return folder
