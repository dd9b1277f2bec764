"""Training of small cross-encoders, and what a kill in the middle leaves."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnothi.retrieval.rerank import CrossEncoderReranker, load_cross_encoder
from gnothi.training.finetuning import CHECKPOINTS, HEADER, METRICS, split
from gnothi.training.reranker.pairs import Example, TrainingSettings
from gnothi.training.reranker.stages import assess, ordered, train
from tests.retrieval.cross_encoders import causal, classifier
from tests.training import launched
from tests.training.launched import assert_same, command_killed_and_undisturbed
from tests.training.recording import RecordingWatch

EXAMPLES = [
    Example(f"q{number}", f"where is w{number}", (f"w{number} is the city",), tuple(f"w{number + k} is" for k in range(1, 4)))
    for number in range(12)
]
SETTINGS = TrainingSettings(epochs=3, batch=8, learning_rate=1e-2, evaluate_every=5, validation=0.25)


def test_an_epoch_holds_each_pair_once_and_those_of_a_question_together() -> None:
    rows = ordered(EXAMPLES, SETTINGS)
    epoch = 12 * 4
    assert len(rows) == 3 * epoch
    for start in range(0, len(rows), epoch):
        part = rows[start : start + epoch]
        assert len(set(part)) == epoch
        assert sum(a[0] != b[0] for a, b in pairwise(part)) == 11
    assert rows[:epoch] != rows[epoch : 2 * epoch]


def test_figures_are_those_of_scikit_learn() -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    scores = {text: rng.normal() for one in EXAMPLES for text in (*one.positive, *one.negative)}
    found = assess(lambda _, texts: [scores[text] for text in texts], EXAMPLES)
    expected = [
        sklearn.average_precision_score([1, 0, 0, 0], [scores[text] for text in (*one.positive, *one.negative)])
        for one in EXAMPLES
    ]
    assert found["average_precision"] == pytest.approx(np.mean(expected), abs=1e-6)
    assert assess(lambda _, texts: [0.0] * len(texts), EXAMPLES) == {"average_precision": 0.25, "first": 0.0}


@pytest.mark.parametrize("make", [classifier, causal])
def test_trained_in_a_folder_that_is_then_a_reranker(make: Any, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    base = make(tmp_path / "base")
    out = tmp_path / "out"
    out.mkdir()
    watch = RecordingWatch()
    header = train(out, lambda: load_cross_encoder(base, "base"), "base", EXAMPLES, SETTINGS, watch)
    assert header["after"]["average_precision"] >= header["before"]["average_precision"]
    assert header["questions"] == {"training": 9, "validation": 3}
    lines = watch.lines
    assert lines == [json.loads(line) for line in (out / METRICS).read_text().splitlines()]
    assert lines[0]["step"] == 0
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
    reranker = CrossEncoderReranker.open(str(out))
    scores = reranker.score_blocking("where is w1", EXAMPLES[1].positive + EXAMPLES[1].negative)
    assert assess(reranker.score_blocking, split(EXAMPLES, SETTINGS, "")[1]) == header["after"]
    assert len(scores) == 4
    assert train(out, lambda: pytest.fail("trained again"), "base", EXAMPLES, SETTINGS) == header


def test_the_query_read_once_gives_the_librarys_loss_and_gradients(tmp_path: Path) -> None:
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
    from torch import tensor

    from gnothi.training.reranker.stages import pair_loss

    model = load_cross_encoder(causal(tmp_path), "base")
    rows = ordered(EXAMPLES, SETTINGS)[2:21]  # the first and the last question are cut
    queries, texts, labels = (list(column) for column in zip(*rows, strict=True))
    found = []
    for loss in (BinaryCrossEntropyLoss(model), pair_loss(model)):
        model.zero_grad()
        value = loss([queries, texts], tensor(labels))
        value.backward()
        found.append((value.item(), [p.grad.clone() for p in model.parameters() if p.grad is not None]))
    (value, gradients), (again, others) = found
    assert type(loss).__name__ == "QueryOnceLoss"
    assert again == pytest.approx(value, abs=1e-5)
    for one, other in zip(gradients, others, strict=True):
        assert other.numpy() == pytest.approx(one.numpy(), abs=1e-4)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_killed_at_three_moments(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    settings = ("learning_rate=1e-3", "epochs=1", "batch=64", "evaluate_every=5")
    moments = (20, 43, 47)  # among the pairs, before and after the first checkpoint
    command = ("reranker", "lab-train:two_hop_choice", "--limit", "40")
    command_killed_and_undisturbed(tmp_path, command, settings, moments, (METRICS, "pairs/pairs.jsonl"))
    assert_same(tmp_path, (METRICS, HEADER, "model.safetensors", "tokenizer.json", "modules.json", "pairs/pairs.jsonl"))
    assert any((tmp_path / "killed" / CHECKPOINTS).glob("checkpoint-*"))


def by_two(out: Path) -> None:
    base = next(path.parent for path in (out.parent / "base").rglob("tokenizer.json") if path.parent.name != "parts")
    train(out, lambda: load_cross_encoder(str(base), "base"), "base", EXAMPLES, SETTINGS)


@pytest.mark.slow
@pytest.mark.parametrize("make", [classifier, pytest.param(causal, marks=pytest.mark.long)])
def test_two_processes(make: Any, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    make(tmp_path / "base")
    launched.killed_and_undisturbed(tmp_path, by_two, 3, (METRICS, HEADER, "model.safetensors"))
