"""Questions over Wikipedia, the web or a collection of passages, in the official files and the hub's rows."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gnothi.datasets.records import Record, has, opened, read_records, reads
from gnothi.types import Question

# BEIR and MTEB: queries whose relevant passages are known, and no answers.

_SPLITS = ("test", "dev", "train")


def is_beir(first: Mapping[str, Any]) -> bool:
    return isinstance(first.get("text"), str) and first.keys() - {"text", "metadata", "title"} in ({"_id"}, {"id"})


def beir_beside(path: Path) -> Callable[[Record], Record]:
    """Adds the judgements of ``qrels/test.tsv`` or ``.jsonl`` (else dev, train) beside the queries, where they lie there."""
    folders = (path.parent / "qrels", path.parent.parent / "qrels")
    files = [folder / f"{split}{end}" for split in _SPLITS for folder in folders for end in (".tsv", ".jsonl")]
    relevant: dict[str, tuple[str, ...]] = {}
    for query, passage in _judged(next((file for file in files if file.is_file()), None)):
        relevant[query] = (*relevant.get(query, ()), passage)
    return lambda record: replace(record, data={**record.data, "qrels": relevant.get(record.identity("_id", "id"))})


@reads(
    "beir",
    "BEIR and MTEB: a file or folder whose name holds 'quer' (_id, text), with qrels beside it",
    is_beir,
    named="quer",
    beside=beir_beside,
)
def beir(record: Record) -> Question:
    """Metadata's ``supporting_ids`` are the passages that the judgements call relevant. There is no gold answer."""
    return record.question(id="_id id", text="text", supporting_ids=record.data.get("qrels") or None)


def _judged(path: Path | None) -> Iterator[tuple[str, str]]:
    """Query and passage of each line ``query-id corpus-id score`` (TREC's have a 0 in between) with a score above 0."""
    if path is None:
        return
    if path.suffix == ".jsonl":
        for record in read_records(path):
            if isinstance(score := record.data.get("score"), int | float) and score > 0:
                yield record.identity("query-id"), record.identity("corpus-id")
        return
    with opened(path) as file:
        for line in file:
            fields = line.decode("utf-8", "replace").split()
            if len(fields) in (3, 4) and fields[-1].isdigit() and int(fields[-1]) > 0:
                yield fields[0], fields[-2]


# DPR's questions (Karpukhin et al. 2020), ``*.qa.csv``: a line is a question, a tab and a list of answers. There is no header.
# NaturalQuestions, TriviaQA, SQuAD, WebQuestions and CuratedTREC as open questions.


@reads(
    "dpr",
    "DPR's questions: files named *.qa.csv (question, a tab, a list of answers)",
    lambda _: False,
    ending=".qa.csv",
    columns=("question", "answers"),
)
def dpr(record: Record) -> Question:
    """The answers are written as a list of Python's. The id is the line's number, for the files have none."""
    value = record.data.get("answers")
    try:
        answers = ast.literal_eval(value) if isinstance(value, str) else value
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        answers = None
    if not isinstance(answers, list):
        raise record.invalid(f"answers = {value!r:.60}", "a list as Python writes it, such as ['one', 'two']")
    return record.question(record.inside({"answers": answers}).answers("answers"), "one_hop")


# KILT (Petroni et al. 2021): tasks over one Wikipedia, their answers each with the pages it rests on.


def is_kilt(first: Mapping[str, Any]) -> bool:
    return "id" in first and isinstance(first.get("input"), str) and isinstance(first.get("output"), list | type(None))


@reads("kilt", "KILT: the official lines (input, output: answer, provenance), and the hub's", is_kilt)
def kilt(record: Record) -> Question:
    """Metadata's ``supporting`` names the titles of the pages. Outputs that are pages alone are no answers."""
    outputs = record.data.get("output") or []
    if not isinstance(outputs, list) or not all(isinstance(output, Mapping) for output in outputs):
        raise record.invalid(f"output = {outputs!r:.60}", 'a list of objects with "answer" or "provenance"')
    answers = [output for output in outputs if output.get("answer") is not None]
    pages = [page for output in outputs for page in output.get("provenance") or [] if isinstance(page, Mapping)]
    titles = tuple(dict.fromkeys(str(page["title"]) for page in pages if page.get("title")))
    return record.question(record.inside({"output": answers}).answers("output"), text="input", supporting=titles)


# Natural Questions (Kwiatkowski et al. 2019) in full: the hub's rows, and Google's simplified lines.

_YES_NO = {0: "no", 1: "yes", "NO": "no", "YES": "yes"}


def is_natural_questions(first: Mapping[str, Any]) -> bool:
    question = first.get("question")
    hub = isinstance(question, Mapping) and "text" in question and "document" in first
    return "annotations" in first and (hub or {"question_text", "document_text"} <= first.keys())


@reads(
    "natural_questions",
    "Natural Questions: the hub's rows (question: text; annotations), and Google's simplified lines (question_text)",
    is_natural_questions,
)
def natural_questions(record: Record) -> Question:
    """Gold answers are every annotator's short ones, and yes or no. The page stays in the file."""
    try:
        answers = _answers(record.data)
    except (AttributeError, IndexError, KeyError, TypeError):
        raise record.invalid("annotations of another shape", "annotations with short_answers") from None
    question = record.data.get("question")
    text = record.inside(question).text("text") if isinstance(question, Mapping) else record.text("question_text")
    return record.inside({**record.data, "question": text}).question(answers, "one_hop", id="id example_id")


def _answers(data: Mapping[str, Any]) -> list[str]:
    annotations = data["annotations"]
    if isinstance(annotations, Mapping):  # the hub turns a list of objects into an object of lists
        texts = [str(text) for one in annotations["short_answers"] for text in one["text"]]
        return [*texts, *(_YES_NO[one] for one in annotations["yes_no_answer"] if one in _YES_NO)]
    tokens = str(data["document_text"]).split(" ") if "document_text" in data else []
    spans = [(span["start_token"], span["end_token"]) for one in annotations for span in one["short_answers"]]
    texts = [" ".join(tokens[start:end]) for start, end in spans]
    return [*filter(None, texts), *(_YES_NO[one] for one in (one["yes_no_answer"] for one in annotations) if one in _YES_NO)]


# NQ-open (Kwiatkowski et al. 2019; Lee et al. 2019): one question a line with its short answers, and nothing else.


def is_nq_open(first: Mapping[str, Any]) -> bool:
    return first.keys() == {"question", "answer"} and isinstance(first["answer"], list)


@reads("nq_open", "NQ-open: the official lines (question, answer: a list), nothing else", is_nq_open)
def nq_open(record: Record) -> Question:
    """Any of the answers counts as right. The id is the line's number, for the official files have none."""
    return record.question(record.answers("answer"), "one_hop")


# PopQA (Mallen et al. 2023): one-hop questions about entities, each with how often its subject is looked up.


@reads(
    "popqa",
    "PopQA: the official table (TSV: question, possible_answers, s_pop ...), or the same keys as JSON",
    has("question", "possible_answers", "s_pop"),
    table=True,
)
def popqa(record: Record) -> Question:
    """``kind`` is the relation asked for; metadata's ``popularity`` counts monthly page views of the subject."""
    value, views = (record.data.get(key) for key in ("possible_answers", "s_pop"))
    try:
        answers = json.loads(value) if isinstance(value, str) else value
        popularity = int(str(views))
    except (ValueError, RecursionError):
        raise record.invalid(
            f"possible_answers = {value!r:.60}, s_pop = {views!r:.20}", "a JSON list of answers and a whole number"
        ) from None
    answered = record.inside({"possible_answers": answers}).answers("possible_answers")
    return record.question(answered, (record.known("prop") or "").strip().replace(" ", "_"), popularity=popularity)


# SelfAware (Yin et al. 2023): questions that can be answered among questions that nobody can.

ANSWERABLE, UNANSWERABLE = "answerable", "unanswerable"


@reads(
    "selfaware",
    "SelfAware: the official file (example: question_id, question, answer, answerable)",
    has("question_id", "question", "answer", "answerable"),
    container="example",
)
def selfaware(record: Record) -> Question:
    """``kind`` and metadata's ``answerable`` say which sort it is; to abstain is right where there is no answer."""
    answerable = record.data.get("answerable")
    if not isinstance(answerable, bool):
        raise record.invalid(f"answerable = {answerable!r:.60}", "true or false")
    answers = record.answers("answer")
    if answerable and not answers:
        raise record.invalid("an answerable question without an answer", "a list of answers, or answerable false")
    if answers and not answerable:
        raise record.invalid(f"answerable = False with answer = {answers!r:.60}", "answer null, or answerable true")
    kind = ANSWERABLE if answerable else UNANSWERABLE
    return record.question(answers, kind, id="question_id", answerable=answerable, source=record.known("source"))


# SQuAD (Rajpurkar et al. 2016, 2018) and what keeps its form, as XQuAD: articles of paragraphs with their questions.


def squad_questions(article: Record) -> Iterator[Record]:
    """The questions of an article, each with its ``title``. The paragraphs stay in the file: index it to search them."""
    if "paragraphs" not in article.data and "answers" in article.data:
        yield article
        return
    title = article.data.get("title", "")
    try:
        questions = [{**one, "title": title} for paragraph in article.data["paragraphs"] for one in paragraph["qas"]]
    except (KeyError, TypeError):
        raise article.invalid("paragraphs of another shape", "paragraphs, each with qas") from None
    for number, one in enumerate(questions, start=1):
        yield Record(one, f"{article.place}, question {number}", article.number)


def is_squad(first: Mapping[str, Any]) -> bool:
    paragraphs = first.get("paragraphs")
    official = isinstance(paragraphs, list) and all(isinstance(one, dict) and "qas" in one for one in paragraphs)
    return official or (isinstance(first.get("question"), str) and "context" in first and _is_answers(first.get("answers")))


@reads(
    "squad",
    "SQuAD 1.1 and 2.0, XQuAD: the official files (data: paragraphs, qas), and the hub's (question, context, answers: text)",
    is_squad,
    container="data",
    records=squad_questions,
)
def squad(record: Record) -> Question:
    """``metadata`` holds the article's title; of SQuAD 2.0 also whether the question is ``answerable``."""
    value = record.data.get("answers")
    hub = _is_hub(value)
    if not hub and (
        not isinstance(value, list) or not all(isinstance(one, dict) and isinstance(one.get("text"), str) for one in value)
    ):
        raise record.invalid(f"answers = {value!r:.60}", "a list of answers, each with its text")
    answers = record.answers("answers")
    title = record.data.get("title")
    answerable = not record.data["is_impossible"] if "is_impossible" in record.data else False if hub and not answers else None
    return record.question(answers, title=None if title is None else str(title), answerable=answerable)


def _is_answers(value: object) -> bool:
    """Of a single question, as the hub or the official files have them."""
    listed = isinstance(value, list) and value and all(isinstance(one, dict) and "answer_start" in one for one in value)
    return bool(listed) or _is_hub(value)


def _is_hub(answers: object) -> bool:
    """The hub keeps a list of texts and one of places instead of a list of answers."""
    return isinstance(answers, Mapping) and isinstance(answers.get("text"), list) and "answer_start" in answers


# TriviaQA (Joshi et al. 2017): the official files of the reading comprehension and the unfiltered sets.

_KEYS = {
    "Answer": ("Value", "Aliases", "HumanAnswers", "NormalizedAliases"),
    "answer": ("value", "aliases", "human_answers", "normalized_aliases"),  # as the hub spells them
}
_UNKNOWN = "<unk>"  # the hub's test set


def is_triviaqa(first: Mapping[str, Any]) -> bool:
    answer = first.get("answer")
    hub = isinstance(answer, Mapping) and {"value", "aliases"} <= answer.keys()
    return {"Question", "QuestionId"} <= first.keys() or ({"question", "question_id"} <= first.keys() and hub)


@reads(
    "triviaqa",
    "TriviaQA: the official files (Data: Question, QuestionId, Answer), and the hub's",
    is_triviaqa,
    container="Data",
)
def triviaqa(record: Record) -> Question:
    """Any alias counts as right, also in TriviaQA's own normal form (NormalizedAliases), which turns punctuation into spaces
    where ours drops it. Evidence documents are not read. A question without an answer (the test set) has no gold answer."""
    key = record.first(tuple(_KEYS)) or "Answer"
    value, names = record.data.get(key), _KEYS[key]
    if value is not None and (not isinstance(value, Mapping) or names[0] not in value):
        raise record.invalid(f"{key} = {value!r:.60}", f'an object with "{names[0]}" and "{names[1]}"')
    answer = record.inside(value or {})
    texts = [text for name in names if name in answer.data for text in answer.answers(name)]
    if value is not None and not texts:
        raise record.invalid(f"an {key} without text", f'text under its "{names[0]}"')
    source = record.known("QuestionSource") or record.known("question_source")
    answers = (text for text in texts if text != _UNKNOWN)
    return record.question(answers, id="QuestionId question_id", text="Question question", source=source)


# TruthfulQA (Lin et al. 2022): questions that invite a common falsehood, in the official table.

COLUMNS = ("Question", "Best Answer", "Correct Answers", "Incorrect Answers")


def is_truthfulqa(first: Mapping[str, Any]) -> bool:
    return first.keys() >= set(COLUMNS)


@reads("truthfulqa", f"TruthfulQA: the official table (CSV: {', '.join(COLUMNS)})", is_truthfulqa, table=True)
def truthfulqa(record: Record) -> Question:
    """Gold answers are the best and the correct ones; metadata holds ``incorrect_answers``, ``category`` and ``source``.
    ``kind`` is adversarial or non_adversarial. The id is the row's number, for the table has none."""
    return record.question(
        (record.text("Best Answer"), *_listed(record, "Correct Answers")),
        (record.known("Type") or "").strip().lower().replace("-", "_"),
        text="Question",
        category=record.known("Category"),
        source=record.known("Source"),
        incorrect_answers=_listed(record, "Incorrect Answers"),
    )


def _listed(record: Record, key: str) -> tuple[str, ...]:
    parts = tuple(dict.fromkeys(part for text in record.text(key).split(";") if (part := " ".join(text.split()))))
    if not parts:
        raise record.invalid(f"{key} = {record.data[key]!r:.60}", "answers with semicolons between them")
    return parts


# WebQuestions (Berant et al. 2013): the official files, whose answers are written in Lisp.

_DESCRIPTION = re.compile(r'\(description (?:"((?:[^"\\]|\\.)*)"|([^()]*))\)')


@reads("webquestions", "WebQuestions: the official files (utterance, targetValue)", has("utterance", "targetValue"))
def webquestions(record: Record) -> Question:
    """The id is the record's number, for the files have none."""
    value = record.text("targetValue")
    answers = [quoted or bare for quoted, bare in _DESCRIPTION.findall(value)]
    if not answers:
        raise record.invalid(f"targetValue = {value!r:.60}", "(list (description ...))")
    return record.question(answers, "one_hop", text="utterance")
