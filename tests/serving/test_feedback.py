"""``POST /v1/feedback``, the file it fills, and what drift says in metrics."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from gnothi import methods
from gnothi.calibration.feedback import read
from gnothi.calibration.file import Calibration, kept_scores
from gnothi.errors import InvalidSetting
from gnothi.filtering.learned import LearnedGate
from gnothi.methods.cascade import LearnedCascade
from gnothi.models.identity import Identity
from gnothi.serving.drift import Drifts, learnt
from gnothi.serving.routes.models import in_words
from gnothi.stats.benefit import fit_benefit
from gnothi.stats.cascade import Cascade, Step
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from tests.command_line import KNOWN, covered_fact
from tests.messages import refused
from tests.serving.served import Served, served


async def asked(server: Served, question: str, model: str = "gnothi/seakr") -> str:
    return str((await server.chat(question, model)).json()["gnothi"]["id"])


async def judged(server: Served, **body: Any) -> tuple[int, Any]:
    found = await server.http.post("/v1/feedback", json=body)
    return found.status_code, found.json()


async def test_judgements_are_kept_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "feedback.jsonl"
    async with served(feedback=file) as server:
        known = await asked(server, KNOWN)
        assert await judged(server, id=known, right=True) == (
            200,
            {"object": "feedback", "id": known, "model": "gnothi/seakr", "right": True},
        )
        searched = await asked(server, covered_fact()[2])
        await judged(server, id=searched, right=False)
        await judged(server, id=searched, right=False)  # said again: nothing new
        plain = await asked(server, KNOWN, "gnothi/direct")
        await judged(server, id=plain, right=True)
        lines = file.read_text().splitlines()
        assert len(lines) == 3
        assert KNOWN not in file.read_text()
        assert "Ada Bram" not in file.read_text()
        metrics = (await server.http.get("/metrics")).text
        assert 'gnothi_feedback_total{judged="right",setup="gnothi/seakr",source="memory"} 1.0' in metrics
        assert 'gnothi_feedback_total{judged="wrong",setup="gnothi/seakr",source="search"} 1.0' in metrics
        await judged(server, id=known, right=False)  # on second thoughts
    first, second, third = sorted(read(file), key=lambda one: [searched, plain, known].index(one.answer_id))
    assert (first.trusted, first.signal, first.threshold, first.right) == (False, "gram", -6.0, False)
    assert first.score is not None
    assert first.score > -6.0
    assert (second.signal, second.settings, second.right) == (None, None, True)
    assert (third.trusted, third.right, third.method, third.model) == (True, False, "seakr", Identity("lab"))
    assert third.score is not None
    assert third.score <= -6.0
    assert third.settings is not None
    assert third.settings["signal.samples"] == 20


async def test_texts_are_kept_where_they_are_wanted(tmp_path: Path) -> None:
    async with served(feedback=tmp_path / "f", feedback_content=True) as server:
        await judged(server, id=await asked(server, KNOWN), right=True)
    (line,) = map(json.loads, (tmp_path / "f").read_text().splitlines())
    assert (line["question"], line["answer"]) == (KNOWN, "Ada Bram")


async def test_what_is_refused(tmp_path: Path) -> None:
    async with served(feedback=tmp_path / "f") as server:
        answer = await asked(server, KNOWN)
        for body, status, param in (
            ({"id": "0" * 32, "right": True}, 404, "id"),
            ({"id": answer, "right": "yes"}, 400, "right"),
            ({"id": answer}, 400, "right"),
            ({"id": 5, "right": True}, 400, "id"),
            ({}, 400, "id"),
        ):
            code, found = await judged(server, **body)
            assert (code, found["error"]["param"]) == (status, param)
        with refused(InvalidSetting):
            async with served(feedback=tmp_path / "f"):
                pass
    assert (tmp_path / "f").read_text() == ""
    async with served() as server:
        code, found = await judged(server, id=answer, right=True)
        assert code == 404
        assert "takes no feedback" in found["error"]["message"]


def calibration(scores: Any, **details: Any) -> Calibration:
    made = Calibration("seakr", "gram", -6.0, Identity("lab"), "/some/where/q.jsonl", 100, "em", "2026-11-23T00:00:00+00:00")
    return replace(made, scores=kept_scores(scores), details=details)


async def test_drift_is_told_in_metrics_and_models() -> None:
    async with served(methods=("seakr", "direct")) as server:
        service = server.context.service
        setup = service.setups["seakr"]
        found = calibration(np.full(100, 3.0))  # every question was doubted then
        service.setups["seakr"] = replace(setup, plan=replace(setup.plan, calibration=found))
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        drifts = Drifts(service, registry)
        assert drifts.of(service.setups["direct"]) is None
        drifts._drifting["seakr"]._size = 20
        for _ in range(20):
            await asked(server, KNOWN)
        said = drifts.of(setup)
        assert said is not None
        assert (said["state"], said["distance"]) == ("drift", 1.0)
        assert "0% are above the threshold, 100% were" in str(said["advice"])
        text = generate_latest(registry).decode()
        assert 'gnothi_score_drift_state{gnothi_score_drift_state="drift",setup="seakr"} 1.0' in text
        assert 'gnothi_score_drift_distance{setup="seakr"} 1.0' in text


async def test_a_learnt_gate_notices_drift() -> None:
    right = np.arange(40) % 2 == 0
    steps = (Step("draft", (), fit_benefit(np.empty((40, 0)), right, ~right), 0.1),)
    gate = LearnedGate(Cascade(steps), (), (), (), scores=(0.9,) * 100)  # now it sees no gain in any search
    async with served(methods=("cascade",)) as server:
        service = server.context.service
        setup = service.setups["cascade"]
        assert isinstance(setup.method, LearnedCascade)
        service.setups["cascade"] = setup = replace(setup, method=replace(setup.method, learned=gate))
        from prometheus_client import CollectorRegistry

        drifts = Drifts(service, CollectorRegistry())
        drifts._drifting["cascade"]._size = 4
        for _ in range(4):
            await asked(server, KNOWN, "gnothi/cascade")
        said = drifts.of(setup)
    assert said is not None
    assert (said["state"], said["distance"]) == ("drift", 1.0)
    assert "0% are above the threshold, 100% were" in str(said["advice"])
    assert "`gnothi calibrate --learn RUN`" in str(said["advice"])


@pytest.mark.parametrize(("gate", "watched"), [("learned", True), ("always", False), ("perplexity", False)])
def test_a_learnt_gate_that_does_not_search_is_not_watched(gate: str, watched: bool) -> None:
    right = np.arange(40) % 2 == 0
    steps = (Step("draft", (), fit_benefit(np.empty((40, 0)), right, ~right), 0.1),)
    learned = LearnedGate(Cascade(steps), (), (), ())
    resources = {"model": Scripted({}), "retriever": ScriptedRetriever([]), "learned": learned}
    method = methods.create("compose", resources, {"gate": gate, "answer": "learned"})
    assert (learnt(cast("Any", SimpleNamespace(method=method))) is learned) == watched


def test_a_guarantee_in_words() -> None:
    guarantee = {"target_error": 0.1, "epsilon": 0.1}
    worth = {"accuracy": 0.8, "retrieval_rate": 0.996, "always": 0.75, "never": 0.5}
    said = in_words(calibration([0.1], guarantee=guarantee, worth=worth))
    told = "Guarantee: at most 10% of the answers given without a search are wrong, for questions like those"
    assert said[0].startswith(told)
    assert "80% rightly and searches for 99.6%" in said[2]
    assert said[-1] == "Chosen on 100 questions of q.jsonl (em), 2026-11-23."
    judged = replace(calibration([], guarantee=guarantee), metric="feedback")
    assert "for answers like those that people judged" in in_words(judged)[0]
    never = replace(calibration([0.1]), threshold=float("-inf"))
    assert in_words(never)[:2] == ["This gate always searches.", "No guarantee was asked for when the threshold was chosen."]
