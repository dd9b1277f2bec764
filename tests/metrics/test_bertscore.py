"""BERTScore beside greedy matching computed from the model's states."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from gnothi.errors import InvalidInput, MissingDependency, ModelUnavailable
from gnothi.metrics.bertscore import BertScore
from tests.messages import refused

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] anna went to the sea and bella hill".split()


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bert_score", None)
    with refused(MissingDependency):
        BertScore("any", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT."""
    import torch
    import transformers

    library: Any = transformers
    found = tmp_path_factory.mktemp("bert")
    (found / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    library.BertModel(library.BertConfig(vocab_size=len(WORDS), **sizes)).save_pretrained(found)
    library.BertTokenizerFast(str(found / "vocab.txt"), model_max_length=64).save_pretrained(found)
    return found


def test_it_is_greedy_matching_of_states(folder: Path) -> None:
    pytest.importorskip("bert_score", reason="needs gnothi[bertscore]")
    import torch
    import transformers

    library: Any = transformers
    model, tokenizer = library.BertModel.from_pretrained(folder).eval(), library.AutoTokenizer.from_pretrained(folder)

    def states(text: str) -> Any:
        with torch.inference_mode():
            found = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states[2][0, 1:-1]
        return found / found.norm(dim=1, keepdim=True)

    answers, references = ["anna went to the sea", "bella", "anna"], ["bella went to the hill", "anna and bella", "anna"]
    expected = []
    for answer, reference in zip(answers, references, strict=True):
        alike = states(answer) @ states(reference).T
        precision, recall = alike.max(dim=1).values.mean(), alike.max(dim=0).values.mean()
        expected.append(float(2 * precision * recall / (precision + recall)))
    score = BertScore(str(folder), 2)
    assert score(answers, references) == pytest.approx(expected, abs=1e-5)
    assert score([], []) == []
    with pytest.raises(InvalidInput):
        score(["anna"], [])
    with refused(ModelUnavailable):
        BertScore(str(folder))
