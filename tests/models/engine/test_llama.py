"""The laboratory's models without transformers: against transformers' own of the same folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from transformers import AutoModelForCausalLM, AutoTokenizer

from gnothi.models import ModelSettings, load_model
from gnothi.models.engine import llama, loading
from gnothi.models.engine.passes import Network, attend
from gnothi.models.engine.path import at_once
from gnothi.models.engine.states import Tap
from gnothi.models.engine.text import Detokenizer
from gnothi.models.engine.trial import settle
from gnothi.models.scheme import LABORATORYS

PROMPTS = [(2, 14, 300, 7, 41, 200), (2, 13), tuple(range(2, 90)), (2, 500, 31)]


@pytest.fixture(scope="module", params=list(LABORATORYS))
def folder(request: pytest.FixtureRequest) -> Path:
    return LABORATORYS[request.param]


@pytest.fixture(scope="module")
def both(folder: Path) -> tuple[Any, Any]:
    theirs: Any = AutoModelForCausalLM.from_pretrained(folder)
    return llama.load(folder)[0], theirs.eval()


def networks(both: tuple[Any, Any]) -> list[Network]:
    found = [Network(model, 0) for model in both]
    for network in found:
        network.wanted = frozenset({Tap(1, "residual"), Tap(2, "ffn")})
    return found


def same(one: Any, other: Any) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("piece", [8192, 40])
def test_prompts_are_read_to_the_same_bits(both: tuple[Any, Any], piece: int) -> None:
    with torch.inference_mode():
        found: list[Any] = []
        for network in networks(both):
            network.piece = piece
            cache, _, logits, states = at_once(network.prefill(PROMPTS))
            found.append((logits, states, [layer.keys for layer in cache.layers], [layer.values for layer in cache.layers]))
            found[-1] += (list(network.ahead(PROMPTS, 30)), list(network.ends(PROMPTS, 400)), network.plain(PROMPTS[0]))
    same(*found)


def test_attention_is_the_same(both: tuple[Any, Any], folder: Path) -> None:
    words = Detokenizer(AutoTokenizer.from_pretrained(folder))
    with torch.inference_mode():
        own, theirs = (attend(model, words, PROMPTS[2], PROMPTS[3]) for model in both)
    assert own.tokens == theirs.tokens
    np.testing.assert_allclose(own.attention, theirs.attention, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(own.entropies, theirs.entropies, rtol=1e-5, atol=1e-6)


def test_a_trial_says_what_is_taken_for_granted(both: tuple[Any, Any]) -> None:
    own, theirs = both
    assert settle(Network(theirs, 0)) == own.verdict()


@pytest.mark.parametrize("name", LABORATORYS)
def test_it_tells_of_itself_what_the_librarys_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = [dict(load_model(name).metadata), load_model(name).profile]
    monkeypatch.setattr(loading, "LABORATORYS", {})
    assert told == [dict(load_model(name).metadata), load_model(name).profile]


@pytest.mark.parametrize("chosen", [{"dtype": "bfloat16"}, {"attention": "plain"}, {"attention": "repeated"}])
def test_what_it_does_not_do_the_library_does(chosen: dict[str, Any]) -> None:
    model, _, declared = loading.load(str(LABORATORYS["lab"]), "lab", ModelSettings(**chosen))
    assert type(model).__module__.startswith("transformers")
    assert declared.renderer == "tagged"


LIBRARYS = AutoTokenizer.from_pretrained(LABORATORYS["lab"])
OWN = llama.Tokens(LABORATORYS["lab"])


@settings(max_examples=30)
@given(
    some.lists(some.one_of(some.text(), some.sampled_from(["<question> Who directed The Amber Harbour?", "<eos>", " a  b "])))
)
def test_text_becomes_the_same_tokens(texts: list[str]) -> None:
    for special in (False, True):
        theirs = LIBRARYS(texts, add_special_tokens=special, return_attention_mask=False)["input_ids"] if texts else []
        assert OWN(texts, add_special_tokens=special)["input_ids"] == theirs


def test_the_tokenizer_tells_the_same() -> None:
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        assert getattr(OWN, name) == getattr(LIBRARYS, name)
    assert OWN.get_added_vocab() == LIBRARYS.get_added_vocab()
    assert list(map(str, OWN.added_tokens_decoder.values())) == list(map(str, LIBRARYS.added_tokens_decoder.values()))
    assert len(OWN) == len(LIBRARYS)
