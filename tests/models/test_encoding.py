from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from gnothi.errors import ModelUnavailable
from gnothi.models.encoding import Encoder, end_tokens
from gnothi.models.rendering import Plain, join
from tests.messages import refused
from tests.models.tiny import build_tokenizer

WORDS = st.lists(
    st.sampled_from(["Mara", "Tal", "birth", "year", "1867", "ünter", "x,", "(the", "\n", "Yes", "東京", "a  b"]), max_size=30
)
"""Pieces of text that tokenizers treat differently."""

KINDS = ("words", "bytes", "pieces", "unigram")


class Counting:
    """Counts the characters that a tokenizer is given."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.characters = 0

    def __call__(self, texts: list[str], **options: Any) -> Any:
        self.characters += sum(map(len, texts))
        return self._tokenizer(texts, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_tokenizer()


TEXTS = [
    "Who was born in the year of the harbour?",
    "Mara Tal knows (the birth year), 1867.",
    "ünter 東京 Yes No Answer: Question:",
] * 20


@functools.cache
def shared(kind: str) -> Any:
    """Tokenizers that cut words at spaces, by bytes, by pieces of the whole text, and by likelihood."""
    if kind == "words":
        return build_tokenizer()
    if kind == "unigram":
        made = Tokenizer(models.Unigram())
        made.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
        made.train_from_iterator(TEXTS, trainers.UnigramTrainer(vocab_size=120, unk_token="<unk>", special_tokens=["<unk>"]))
    else:
        made = Tokenizer(models.BPE(unk_token=None if kind == "bytes" else "<unk>"))
        whole = pre_tokenizers.Metaspace(split=False)
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False) if kind == "bytes" else whole
        alphabet = pre_tokenizers.ByteLevel.alphabet() if kind == "bytes" else []
        trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<unk>"], initial_alphabet=alphabet, show_progress=False)
        made.train_from_iterator(TEXTS, trainer)
    wrapped: Any = PreTrainedTokenizerFast
    return wrapped(tokenizer_object=made, unk_token="<unk>")


def reference(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text)["input_ids"])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(beginning=WORDS, ends=st.lists(WORDS, min_size=20, max_size=30))
def test_texts_that_begin_alike_get_the_tokens_each_gets_alone(kind: str, beginning: list[str], ends: list[list[str]]) -> None:
    tokenizer = shared(kind)
    texts = [" ".join(["Who was born in the year of the harbour?"] * 6 + beginning + end) for end in ends]
    encoder = Encoder(tokenizer, Plain(), [])
    assert encoder.encode(texts) == [reference(tokenizer, text) for text in texts]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(
    texts=st.lists(WORDS, min_size=1, max_size=5), continuation=st.sampled_from(["Yes", "No", " x", "ünter", "(the year", "."])
)
def test_continuations_are_what_the_joint_text_has_more(kind: str, texts: list[list[str]], continuation: str) -> None:
    tokenizer = shared(kind)
    prompts = [" ".join(["Question: Which year?", *words, "Answer:"]) for words in texts]
    encoder = Encoder(tokenizer, Plain(), [])
    ids = encoder.encode(prompts)
    found = encoder.continuations_of(prompts, ids, [[continuation, "Yes"]] * len(prompts))
    for prompt, before, both in zip(prompts, ids, found, strict=True):
        for one, tokens in zip((continuation, "Yes"), both, strict=True):
            whole = reference(tokenizer, join(prompt, one))
            assert tokens == (
                whole[len(before) :]
                if whole[: len(before)] == before
                else tokenizer(one, add_special_tokens=False)["input_ids"]
            )


def test_what_many_begin_with_is_tokenised_once(tokenizer: Any) -> None:
    counting = Counting(tokenizer)
    encoder = Encoder(counting, Plain(), [])
    texts = [f"{'Say what you know. ' * 40}Question: Who is number {number}?\nAnswer:" for number in range(100)]
    ids = encoder.encode(texts)
    assert counting.characters < sum(map(len, texts)) / 3
    counting.characters = 0
    encoder.continuations_of(texts, ids, [["Yes"]] * len(texts))
    assert counting.characters < sum(map(len, texts)) / 3


def test_ends_are_numbers() -> None:
    assert end_tokens(SimpleNamespace(eos_token_id=3), SimpleNamespace(eos_token_id=[4, 3]), None) == (3, 4)
    with refused(ModelUnavailable):
        end_tokens(SimpleNamespace(eos_token_id=[3, [5]]))


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_that_the_model_has_no_place_for(kind: str) -> None:
    tokenizer = shared(kind)
    text = "Mara Tal birth year"
    most = max(Encoder(tokenizer, Plain(), ()).encode([text])[0])
    Encoder(tokenizer, Plain(), (), table=most + 1).encode([text])
    short = Encoder(tokenizer, Plain(), (), table=most)
    with pytest.raises(ModelUnavailable) as raised:
        short.encode([text])
    assert str(most) in str(raised.value)
    with pytest.raises(ModelUnavailable):
        short.continuations("", (), [text])
