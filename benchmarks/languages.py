"""How often does a question find its passage first, or among the first five, in each language?

    python -m benchmarks.languages FOLDER

FOLDER holds ``xquad.LANGUAGE.json`` files in SQuAD's format: each is an index of its paragraphs, asked all its questions, and
again with the language's own stems. Then the invented sets of ``tests/retrieval/languages.jsonl``, all in one index with the
passages of ``2wikimultihopqa_corpus.json`` where FOLDER has it, and again with their own stems.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from gnothi.errors import InvalidSetting
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.languages import named
from gnothi.types import Passage

SETS = Path(__file__).parents[1] / "tests" / "retrieval" / "languages.jsonl"


def squad(file: Path) -> tuple[list[Passage], list[tuple[str, str]]]:
    """Paragraphs, and questions with the id of theirs."""
    paragraphs = [one for article in json.loads(file.read_text("utf-8"))["data"] for one in article["paragraphs"]]
    passages = [Passage(str(place), one["context"]) for place, one in enumerate(paragraphs)]
    return passages, [(asked["question"], str(place)) for place, one in enumerate(paragraphs) for asked in one["qas"]]


def recall(index: BM25Index, questions: Sequence[tuple[str, str]]) -> str:
    found = [([one.passage.id for one in index.search_blocking(question, 5)], wanted) for question, wanted in questions]
    first = sum(ids[:1] == [wanted] for ids, wanted in found)
    return f"{first / len(found):.3f} / {sum(wanted in ids for ids, wanted in found) / len(found):.3f}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    for file in sorted(folder.glob("xquad.*.json")):
        passages, asked = squad(file)
        report(file.name, passages, asked, file.name.split(".")[1])
    corpus = folder / "2wikimultihopqa_corpus.json"
    rows = json.loads(corpus.read_text("utf-8")) if corpus.exists() else []
    english = [Passage(f"other{place}", row["text"], row["title"]) for place, row in enumerate(rows)]
    sets = [json.loads(line) for line in SETS.read_text("utf-8").splitlines()]
    own = [Passage(f"{one['code']}{place}", text) for one in sets for place, text in enumerate(one["passages"])]
    for one in sets:
        asked = [(question, f"{one['code']}{place}") for place, question in enumerate(one["questions"])]
        report(one["code"], own + english, asked, one["language"] or one["code"])


def report(name: str, passages: Sequence[Passage], questions: Sequence[tuple[str, str]], language: str) -> None:
    line = f"{name}: {recall(BM25Index.in_memory(passages), questions)}"
    try:
        own = named(language)
    except InvalidSetting:
        own = "english"
    sys.stdout.write(
        (line if own == "english" else f"{line}; as {own}: {recall(BM25Index.in_memory(passages, language=own), questions)}")
        + "\n"
    )


if __name__ == "__main__":
    main()
