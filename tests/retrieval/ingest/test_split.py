from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.retrieval.ingest.split import collapse, count_words, split

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=60)
SENTENCES = st.lists(WORDS, min_size=1, max_size=40).map(lambda words: " ".join(words) + ". ")
TEXTS = st.one_of(st.text(max_size=400), st.lists(SENTENCES, max_size=20).map("".join))


def squeezed(text: str) -> str:
    return "".join(text.split())


@settings(max_examples=settings().max_examples // 3)
@given(blocks=st.lists(TEXTS, max_size=6), words=st.integers(1, 60))
def test_no_text_is_lost_the_order_is_kept_and_no_passage_is_too_long(blocks: list[str], words: int) -> None:
    passages = list(split(blocks, words))
    assert squeezed("".join(passages)) == squeezed("".join(blocks))
    for passage in passages:
        assert passage == collapse(passage)
        assert passage
        assert 1 <= len(passage.split()) <= words
        assert count_words(passage) <= words


@settings(max_examples=settings().max_examples // 3)
@given(text=TEXTS, cuts=st.lists(st.integers(0, 400), max_size=4))
def test_it_does_not_matter_where_blocks_end(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(text)]
    assert list(split([text[a:b] for a, b in itertools.pairwise(places)], 20)) == list(split([text], 20))


@given(sentences=st.lists(st.integers(1, 30), min_size=1, max_size=60), words=st.integers(30, 120))
def test_sentences_that_fit_stay_whole(sentences: list[int], words: int) -> None:
    text = " ".join(" ".join(["Word", *["word"] * (length - 1)]) + "." for length in sentences)
    assert all(passage.endswith(".") for passage in split([text], words))


@given(length=st.integers(1, 3000))
def test_passages_of_running_text_are_about_as_long_as_asked(length: int) -> None:
    text = " ".join("Here are ten words that make up one whole sentence." for _ in range(length))
    sizes = [len(passage.split()) for passage in split([text], 100)]
    assert all(size == 100 for size in sizes[:-2])
    assert len(sizes) == 1 or min(sizes[-2:]) >= 25


def test_a_short_rest_shares_with_the_passage_before() -> None:
    text = " ".join(f"Sentence number {i} has six words." for i in range(17))  # 102 words
    assert [len(passage.split()) for passage in split([text], 100)] == [48, 54]


def test_abbreviations_do_not_end_sentences() -> None:
    text = "Dr. Smith of the U.S. Navy met J. R. Brown at 3.5 miles. He left."
    assert list(split([text], 13)) == ["Dr. Smith of the U.S. Navy met J. R. Brown at 3.5 miles.", "He left."]


def test_zero_words_never_cuts() -> None:
    assert list(split(["One. " * 500, "Two."], 0)) == ["One. " * 500 + "Two."]
    assert list(split(["  \n"], 0)) == []


def test_one_long_sentence_is_cut_into_equal_parts() -> None:
    sizes = [len(passage.split()) for passage in split(["word " * 250], 100)]
    assert sizes == [83, 83, 84]


def test_text_without_spaces_is_cut_too() -> None:
    passages = list(split(["x" * 40_000], 100))
    assert max(map(len, passages)) <= 4000
    assert "".join(passages) == "x" * 40_000


@pytest.mark.parametrize("blocks", [[], [""], [" \n\t "]])
def test_no_text_gives_no_passage(blocks: list[str]) -> None:
    assert list(split(blocks, 100)) == []
