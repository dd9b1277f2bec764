"""Methods on a tiny random model of the in-process backend: everything fits together, and company changes no answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from gnothi import events, methods
from gnothi.models import ModelSettings
from gnothi.models.batched import Batched
from gnothi.models.rendering import Tagged
from gnothi.models.wrappers import Seeded, Traced
from gnothi.protocols import LanguageModel
from gnothi.seeding import question_scope
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Answer, Passage, Question

pytest.importorskip("torch")

PASSAGES = [Passage(f"p{n}", f"w{n} is the city of w{n + 1} .", f"w{n}") for n in range(4)]
QUESTIONS = [Question(f"q{n}", f"where is the w{n} of w{n + 3} ?") for n in range(2)]
RUNS: list[tuple[str, dict[str, Any]]] = [
    ("direct", {"signal": "self_report"}),
    ("cot", {"signal": "gram"}),
    ("rag", {"signal": "ln_entropy"}),
    ("ircot", {"max_steps": 2}),
    ("seakr", {"max_steps": 2}),
    ("seakr", {"max_steps": 1, "signal.site": "residual", "signal.layer": 0}),
    ("seakr", {"max_steps": 2, "signal": "energy", "threshold": -3.0}),
    ("seakr", {"form": "simple", "reason": False}),
    ("seakr", {"max_steps": 2, "signal": "consistency"}),
    ("keqa", {"tries": 4, "k": 2, "max_list_tokens": 20}),
    ("keqa", {"tries": 4, "pick": False, "schedule": "one_by_one", "alpha": 0.5, "max_list_tokens": 20}),
    ("self_consistency", {"paths": 6}),
    ("flare", {"max_steps": 2}),
    ("dragin", {"max_steps": 2, "theta": 0.2}),
    ("react", {"max_steps": 2, "form": "actions"}),
    ("react", {"max_steps": 2, "form": "sentences"}),
    ("searchain", {"max_list_tokens": 20}),
    ("rowen", {"perturb": "resample", "threshold": 0.2}),
    ("slimplm", {"threshold": 0.2}),
    ("self_rag", {"critic": "judgements", "k": 2}),
]
WITHOUT_SAMPLES = ("ircot", "keqa", "self_consistency", "flare", "dragin", "react", "searchain")


@pytest_asyncio.fixture
async def model() -> AsyncIterator[LanguageModel]:
    from gnothi.models.transformers import TransformersBackend
    from tests.models.tiny import build_model, build_tokenizer

    backend = TransformersBackend(build_model("llama"), build_tokenizer(), Tagged(), name="tiny", settings=ModelSettings())
    built = Traced(Seeded(Batched(backend)))
    yield built
    await built.aclose()


async def answer(method: Any, question: Question) -> tuple[Answer, list[float]]:
    """The answer and the scores of its decisions, -1 for one without."""
    with question_scope(1, question.id), events.record() as recorded:
        result = await method(question)
    scores = [event.score for event in recorded if isinstance(event, events.Decided)]
    return result, [-1.0 if score is None else score for score in scores]


@pytest.mark.parametrize(("name", "settings"), RUNS, ids=lambda value: value if isinstance(value, str) else "-".join(value))
async def test_the_same_alone_and_in_company(model: LanguageModel, name: str, settings: dict[str, Any]) -> None:
    common = {"max_tokens": 6, **({"signal.samples": 4} if name not in WITHOUT_SAMPLES else {})}
    resources = {"model": model, "retriever": ScriptedRetriever(PASSAGES)}
    method = methods.create(name, resources, {**common, **settings})
    alone = [await answer(method, question) for question in QUESTIONS]
    together = await asyncio.gather(*(answer(method, question) for question in QUESTIONS))
    for (one, one_scores), (other, other_scores) in zip(alone, together, strict=True):
        assert (one.text, one.rationale, one.evidence) == (other.text, other.rationale, other.evidence)
        assert (one.uncertainty is None) is (other.uncertainty is None)
        if one.uncertainty is not None:
            assert one.uncertainty == pytest.approx(other.uncertainty, rel=1e-3)
        assert one_scores == pytest.approx(other_scores, rel=1e-3)
    if name == "seakr":
        assert all(scores for _, scores in alone)
