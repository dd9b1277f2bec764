"""The utility reference: what is chosen, by words and by a sentence encoder, and what is said of unusable folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.concurrency import gather
from gnothi.errors import InvalidInput, InvalidSetting, ModelUnavailable
from gnothi.filtering.encoders import Lexical, SentenceEncoder
from gnothi.filtering.reference import HEADER, LABELS, VECTORS, Labelled, Reference, choose, open_reference, read_labelled
from gnothi.filtering.utility import DemonstrationSource
from gnothi.types import Passage
from tests.filtering.encoder import tiny_encoder
from tests.messages import refused

TRAM = Passage("p1", "The tram of Dunmere was planned by Odile Varr.", "Dunmere tram")
FERRY = Passage("p2", "The ferry of Heskar sails at noon.", "Heskar ferry")


# --- which ones ----------------------------------------------------------------------------------------------------

RANKED = st.integers(0, 30).flatmap(lambda size: st.permutations(range(size)))


@given(st.data(), RANKED, st.integers(0, 12), st.integers(0, 6))
def test_enough_of_each_label_and_never_too_many(data: Any, ranked: list[int], n: int, at_least: int) -> None:
    helpful = data.draw(st.lists(st.booleans(), min_size=len(ranked), max_size=len(ranked)))
    chosen = choose(ranked, helpful, n, at_least)
    assert len(chosen) == len(set(chosen)) == min(n, len(ranked))
    for label in (True, False):
        stored = sum(one is label for one in helpful)
        assert sum(helpful[place] is label for place in chosen) >= min(at_least, n // 2, stored)
        taken = [place for place in chosen if helpful[place] is label]
        assert taken == [place for place in ranked if helpful[place] is label][: len(taken)]  # the nearest of each label
    assert chosen == [place for place in ranked if place in set(chosen)]


@given(RANKED, st.integers(0, 12))
def test_without_a_share_the_nearest(ranked: list[int], n: int) -> None:
    assert choose(ranked, [True] * len(ranked), n, 2) == ranked[:n]
    assert choose(ranked, [place % 2 == 0 for place in ranked], n, 0) == ranked[:n]


def test_the_far_label_takes_the_place_of_the_least_near() -> None:
    assert choose([0, 1, 2, 3, 4, 5], [True, True, True, True, False, False], 4, 2) == [0, 1, 4, 5]
    assert choose([0, 1, 2, 3, 4, 5], [True, True, True, True, False, False], 4, 1) == [0, 1, 2, 4]


# --- by words ------------------------------------------------------------------------------------------------------


def reference(*labelled: tuple[str, Passage, bool]) -> Reference:
    return Reference([Labelled(*item) for item in labelled])


async def test_the_most_alike_come_last() -> None:
    source = reference(
        ("When does the ferry sail?", FERRY, True),
        ("Who planned the tram?", TRAM, True),
        ("Who planned the ferry?", FERRY, False),
        ("Who planned the tram?", FERRY, False),
    )
    assert isinstance(source, DemonstrationSource)
    found = await source.nearest("Who planned the tram of Dunmere?", TRAM, 2, 1)
    assert [(one.question, one.answer, one.passages) for one in found] == [
        ("Who planned the tram?", "No", (FERRY,)),
        ("Who planned the tram?", "Yes", (TRAM,)),
    ]
    await source.aclose()


async def test_ties_keep_the_stored_order() -> None:
    source = reference(*((f"q{number}", TRAM, True) for number in range(5)))
    found = await source.nearest("nothing alike", FERRY, 3, 0)
    assert [one.question for one in found] == ["q2", "q1", "q0"]


async def test_by_chance() -> None:
    source = reference(*((f"q{number}", TRAM, number == 0) for number in range(50)))
    drawn = [await source.random(4, 1, seed) for seed in range(20)]
    assert drawn == [await source.random(4, 1, seed) for seed in range(20)]
    assert len(set(drawn)) > 15
    assert all(sorted(one.answer for one in found) == ["No", "No", "No", "Yes"] for found in drawn)


async def test_an_empty_reference_has_nothing() -> None:
    assert await reference().nearest("Who?", TRAM, 8, 2) == ()
    assert await reference().random(8, 2, 0) == ()


TEXT = st.text(st.sampled_from("ab Ä1.!\n"), max_size=12)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=6), st.data())
async def test_words_give_cosines(stored: list[tuple[str, str]], data: Any) -> None:
    pairs = [(question, Passage(str(number), text)) for number, (question, text) in enumerate(stored)]
    similarity = Lexical(pairs)
    asked = data.draw(st.sampled_from(pairs) | st.tuples(TEXT, TEXT.map(lambda text: Passage("x", text))))
    found = await similarity.to_stored(*asked)
    assert found.shape == (len(pairs),)
    assert (found >= 0).all()
    assert (found <= 1 + 1e-5).all()
    if asked in pairs and all(any(letter.isalnum() for letter in text) for text in (asked[0], asked[1].text)):
        assert found[pairs.index(asked)] == pytest.approx(1, abs=1e-5)
        assert found.max() == pytest.approx(1, abs=1e-5)


async def test_words_against_cosines_by_hand() -> None:
    # Two stored questions, "a b" and "a": a is in both (weight ln(3/3) + 1 = 1), b in one (ln(3/2) + 1).
    similarity = Lexical([("a b", Passage("1", "x")), ("a", Passage("2", "y"))])
    found = await similarity.to_stored("a", Passage("3", "x"))
    b = np.log(1.5) + 1
    assert found == pytest.approx([(1 / np.hypot(1, b) + 1) / 2, (1 + 0) / 2], abs=1e-5)


# --- folders -------------------------------------------------------------------------------------------------------


def write(folder: Path, lines: Sequence[object], **header: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / LABELS).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (folder / HEADER).write_text(json.dumps({"format": 1, "encoder": "lexical", **header}), encoding="utf-8")
    return folder


def line(question: str, label: int) -> dict[str, Any]:
    judged = [{"id": "p", "title": "T", "text": "text", "before": 0.5, "after": 0.5 + label / 2, "label": label}]
    return {"question_id": question, "question": question, "form": "alone", "judged": judged, "usage": {}}


def test_a_folder_is_read(tmp_path: Path) -> None:
    failed = {"question_id": "c", "error": {"type": "X", "message": "m"}}
    found = open_reference(write(tmp_path, [line("a?", 1), line("b?", 0), failed, line("d?", -1)]))
    assert found.labelled == (
        Labelled("a?", Passage("p", "text", "T"), helpful=True),
        Labelled("d?", Passage("p", "text", "T"), helpful=False),
    )
    assert open_reference(tmp_path, "lexical").labelled == found.labelled
    with refused(InvalidSetting):
        open_reference(tmp_path, "bert")


@pytest.mark.parametrize(
    "header",
    ["{", "[]", '{"format": 2, "encoder": "lexical"}'],
)
def test_a_header_that_cannot_be_read(tmp_path: Path, header: str) -> None:
    (write(tmp_path, []) / HEADER).write_text(header)
    with refused(InvalidInput):
        open_reference(tmp_path)


def test_no_reference_and_an_unfinished_one(tmp_path: Path) -> None:
    with refused(InvalidInput):
        open_reference(tmp_path / "absent")
    (write(tmp_path, []) / HEADER).unlink()
    with refused(InvalidInput):
        open_reference(tmp_path)


def test_lines_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "labels.jsonl").write_bytes(b'{"a": "\xff"}\n')
    with refused(InvalidInput):
        read_labelled(tmp_path / "labels.jsonl")


@pytest.mark.parametrize("broken", [3, {"judged": 1}, {"judged": [{"label": 1}]}, {"judged": [{}]}])
def test_a_broken_line_is_named(tmp_path: Path, broken: object) -> None:
    with refused(InvalidInput):
        open_reference(write(tmp_path, [line("a?", 1), broken]))


# --- a sentence encoder --------------------------------------------------------------------------------------------


async def test_a_sentence_encoder(tmp_path: Path) -> None:
    encoder = tiny_encoder(tmp_path / "encoder")
    from gnothi.filtering.encoders import SentenceEncoder

    pairs = [("who planned tram", TRAM), ("when sails ferry", FERRY), ("who planned ferry", TRAM)]
    vectors = SentenceEncoder(encoder).encode(pairs)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)

    lines = [line("x", 1) for _ in pairs]
    for one, (question, passage) in zip(lines, pairs, strict=True):
        one["question"] = question
        one["judged"][0] |= {"id": passage.id, "title": passage.title, "text": passage.text}
    folder = write(tmp_path / "reference", lines, encoder=encoder)
    np.save(folder / VECTORS, vectors)
    source = open_reference(folder)
    found = await gather(*(source.nearest(question, passage, 1, 0) for question, passage in pairs))
    assert [(one[0].question, one[0].passages[0]) for one in found] == pairs
    await source.aclose()

    np.save(folder / VECTORS, -vectors)
    with refused(InvalidSetting):
        open_reference(folder)
    np.save(folder / VECTORS, vectors[:2])
    with refused(InvalidInput):
        open_reference(folder)
    (folder / VECTORS).unlink()
    with refused(InvalidInput):
        open_reference(folder)


def test_an_encoder_that_is_none(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="the extra `dense` is not installed (pip install 'gnothi[dense]')")
    from gnothi.filtering.encoders import SentenceEncoder

    with refused(ModelUnavailable):
        SentenceEncoder(str(tmp_path / "absent"))
    with refused(ModelUnavailable):
        SentenceEncoder(str(tmp_path))


def small_bert(folder: Path) -> tuple[Any, Any]:
    """A model and its tokenizer, which lie in the folder."""
    pytest.importorskip("sentence_transformers", reason="the extra `dense` is not installed (pip install 'gnothi[dense]')")
    import torch
    import transformers
    from transformers import AutoModel, AutoTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "question", "passage", ":", "who", "sails", "the", "tram", "?", "."]
    (folder / "vocab.txt").write_text("\n".join(words), "utf-8")
    torch.manual_seed(0)
    library: Any = transformers
    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    library.BertModel(library.BertConfig(vocab_size=len(words), **small)).save_pretrained(folder)
    library.BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    return AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def test_raw_first_tokens_are_what_the_library_gives(tmp_path: Path) -> None:
    """KEQA's code: the [CLS] state as it is, of "Question: ...\\n\\nPassage: ...", the title left out."""
    model, tokenizer = small_bert(tmp_path)
    pairs = [("Who sails?", Passage("p", "The tram.", "Ferry")), ("Who?", Passage("q", "The tram sails the tram."))]
    found = SentenceEncoder(f"cls:{tmp_path}").encode(pairs)
    for (question, passage), ours in zip(pairs, found, strict=True):
        read = tokenizer(f"Question: {question}\n\nPassage: {passage.text}", return_tensors="pt")
        theirs = model(**read).last_hidden_state[0, 0].detach().numpy()
        assert np.allclose(ours, theirs, atol=1e-5)
        assert abs(float(np.linalg.norm(ours)) - 1.0) > 0.1


def test_pooled_questions_are_what_the_library_gives(tmp_path: Path) -> None:
    """SKR's code: the pooler's output for the question alone, of length 1."""
    model, tokenizer = small_bert(tmp_path)
    encoder = SentenceEncoder(f"pooler:{tmp_path}")
    assert encoder.name == f"pooler:{tmp_path}"
    questions = ["Who sails the tram?", "Who?"]
    for question, ours in zip(questions, encoder.encode([(one, Passage("", "")) for one in questions]), strict=True):
        theirs = model(**tokenizer(question, return_tensors="pt")).pooler_output[0].detach().numpy()
        assert np.allclose(ours, theirs / np.linalg.norm(theirs), atol=1e-5)
