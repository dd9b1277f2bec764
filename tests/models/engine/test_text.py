"""Exact text, token by token, under tokenizers whose pieces do not simply add up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE, Unigram
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast

from gnothi.models.engine.text import Detokenizer, StopWatch

SENTENCES = ["The lighthouse of Orvel was built in 1820.", "Who built it? Dana Brisk did.", "naïve 東京 🦉 über ça"]
texts = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=40)


def wrap(tokenizer: Tokenizer) -> Any:
    wrapped: Any = PreTrainedTokenizerFast
    return wrapped(tokenizer_object=tokenizer, eos_token="<eos>", pad_token="<pad>")


def byte_level() -> Any:
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer: Any = BpeTrainer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    options = {"vocab_size": 320, "initial_alphabet": alphabet, "special_tokens": ["<pad>", "<eos>"], "show_progress": False}
    tokenizer.train_from_iterator(SENTENCES * 3, trainer(**options))
    return wrap(tokenizer)


def whole_names() -> Any:
    """Pieces of several words with a leading space mark, decoded without the first space, as the laboratory's are."""
    words = ["The", "lighthouse", "of", "Orvel", "was", "built", "in", "Who", "it", "Dana▁Brisk", "did", "x"]
    pieces = ["<pad>", "<eos>", "<unk>", *(f"▁{word}" for word in words), ".", "?"]
    tokenizer = Tokenizer(Unigram([(piece, -1.0) for piece in pieces], unk_id=2, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(["<pad>", "<eos>", "<unk>"])
    return wrap(tokenizer)


BYTES, NAMES = byte_level(), whole_names()


@given(texts, texts)
def test_bytes_a_continuation_has_the_text_it_had_before_tokenisation(before: str, after: str) -> None:
    detokenizer = Detokenizer(BYTES)
    context, ids = (BYTES(text, add_special_tokens=False)["input_ids"] for text in (before, after))
    text = detokenizer.text(context[-8:], ids)
    # Only the tail of the context is decoded along, and it may begin in the middle of a character; the text must not suffer.
    assert text == after
    shares = detokenizer.split(context[-8:], ids, text)
    assert "".join(shares) == after
    assert len(shares) == len(ids)


def test_leading_spaces_are_those_in_context() -> None:
    detokenizer = Detokenizer(NAMES)
    prompt = NAMES("Who built it?")["input_ids"]
    ids = NAMES("Dana Brisk did.")["input_ids"]
    assert detokenizer.text(prompt, ids) == " Dana Brisk did."
    assert detokenizer.split(prompt, ids, " Dana Brisk did.") == [" Dana Brisk", " did", "."]
    assert [detokenizer.piece(token) for token in ids] == [" Dana Brisk", " did", "."]


def test_special_tokens_have_no_text() -> None:
    detokenizer = Detokenizer(NAMES)
    ids = [*NAMES("did")["input_ids"], NAMES.eos_token_id]
    assert detokenizer.text([], ids) == "did"
    assert "".join(detokenizer.split([], ids, "did")) == "did"


@pytest.mark.parametrize("stop", [(". ",), ("\n", "Question:"), ("京",), ("1820.", "Dana"), ("ü",)])
@given(text=st.sampled_from([" ".join(SENTENCES), "a\nb", "x 東京 y", "Question: Who", "no stop here", "über"]))
def test_a_stop_string_is_noticed_at_the_token_that_completes_it(stop: tuple[str, ...], text: str) -> None:
    detokenizer = Detokenizer(BYTES)
    watch = StopWatch(stop, detokenizer)
    ids = BYTES(text)["input_ids"]
    tail, noticed = "", None
    for count in range(1, len(ids) + 1):
        tail, hit = watch.look(tail, ids[count - 1], [], ids[:count])
        if hit:
            noticed = count
            break
    whole = [count for count in range(1, len(ids) + 1) if any(one in BYTES.decode(ids[:count]) for one in stop)]
    assert noticed == (whole[0] if whole else None)


def test_the_cut_is_where_the_first_stop_begins() -> None:
    watch = StopWatch((". ", "it"), Detokenizer(NAMES))
    assert watch.cut("Who built it. Then") == 10
    assert watch.cut("Dana. Then it") == 4
    assert watch.cut("nothing") is None
