"""What is found out about a question, and the probe made of many."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest

from gnothi.errors import InvalidInput, InvalidSetting, MissingCapability
from gnothi.methods.steps.prompts import ANSWER
from gnothi.methods.steps.settings import Measuring
from gnothi.models.wrappers import Traced
from gnothi.signals.probe_folder import HEADER, open_probe
from gnothi.testing.model import Reply, Scripted
from gnothi.training.probe.fit import View
from gnothi.training.probe.job import FINDINGS, Findings, ProbeSettings, examine, spread
from gnothi.types import Capabilities, Profile, Prompt, Question
from tests.messages import refused

KNOWN = 30
QUESTIONS = [Question(f"q{n}", f"Who {'made' if n % 2 else 'found'} thing{n}?", ("Ada",)) for n in range(2 * KNOWN)]
ORIGIN = {"model": {"name": "m", "fingerprint": ""}, "data": {"name": "d", "fingerprint": ""}}
TEXT_ONLY = Capabilities(logprobs=True)


def script(prompt: Prompt) -> list[Reply]:
    """Knows who found things, and doubts who made them."""
    if "found" in prompt.question:
        return [Reply("So the answer is Ada.", (-0.01,))]
    return [Reply(f"So the answer is {name}.", (-2.0,), doubt=5.0) for name in ("Bram", "Cora", "Dora", "Elm")]


def found(out: Path, settings: ProbeSettings, model: Scripted | None = None) -> dict[str, object]:
    with Findings(out, QUESTIONS, {"dataset.name": "d"}) as findings:
        asyncio.run(findings.collect(partial(examine, model=Traced(model or Scripted(script)), settings=settings)))
        return findings.finish(settings, ORIGIN)


def test_what_is_found_out() -> None:
    settings = ProbeSettings(sites=("residual", "ffn"), signal="gram", measuring=Measuring(samples=4))
    model = Traced(Scripted(script))
    known, unknown = (asyncio.run(examine(one, model, settings)) for one in QUESTIONS[:2])
    assert (known["answer"], known["wrong"], unknown["wrong"]) == ("Ada", False, True)
    assert known["uncertainty"] < unknown["uncertainty"]
    assert list(known["states"]) == [
        f"{prompt} middle {site}" for prompt in ("draft", "answer") for site in ("residual", "ffn")
    ]
    assert known["cost"]["probe"]["generated_tokens"] == 0
    assert known["cost"]["uncertainty"]["generated_tokens"] == 4 * 6


def test_views() -> None:
    model = Scripted(script)
    assert ProbeSettings().views(model) == [View("draft", None, "residual"), View("answer", None, "residual")]
    # At once, the two prompts are the same.
    assert ProbeSettings(reason=False, layers=(3,)).views(model) == [View("draft", 3, "residual")]
    assert ProbeSettings().views(Scripted(script, capabilities=TEXT_ONLY)) == []
    for layers, expected in ((4, (0, 1, 2, 3)), (32, (4, 10, 15, 20, 26, 31)), (1, (0,))):
        model.profile = Profile(layers=layers)
        assert spread(model) == expected


@pytest.mark.parametrize("target", ["correctness", "uncertainty"])
def test_the_probe_tells_what_it_learnt(tmp_path: Path, target: str) -> None:
    settings = ProbeSettings(target=target)  # type: ignore[arg-type]
    about = found(tmp_path / "probe", settings)
    probe = open_probe(tmp_path / "probe")
    assert probe.wrong_by_words("Who made thing999?") > 0.5 > probe.wrong_by_words("Who found thing999?")
    held_out = about["held_out"]
    assert isinstance(held_out, dict)
    assert list(held_out) == ["probe", "question", *(["gram"] if target == "uncertainty" else [])]
    assert all(one["auroc"] > 0.95 for one in held_out.values())
    assert probe.thresholds == {name: held_out[name]["threshold"] for name in ("probe", "question")}
    assert all(0.05 < one < 0.95 for one in probe.thresholds.values())
    header = json.loads((tmp_path / "probe" / HEADER).read_text())
    assert header.items() >= {"wrong": KNOWN, "questions": 2 * KNOWN, "failures": 0, "settings": {"reason": "auto"}}.items()
    assert probe.task in (None, ANSWER)


def test_a_model_that_shows_no_states(tmp_path: Path) -> None:
    about = found(tmp_path / "probe", ProbeSettings(), Scripted(script, capabilities=TEXT_ONLY))
    assert open_probe(tmp_path / "probe").states == ()
    assert list(about["held_out"]) == ["question"]  # type: ignore[call-overload]
    with refused(MissingCapability):
        ProbeSettings(target="uncertainty").check(Scripted(script, capabilities=TEXT_ONLY))


def test_it_goes_on_where_it_was_left(tmp_path: Path) -> None:
    class Failing(Scripted):
        left = 40

        def _replies(self, prompt: Prompt) -> list[Reply]:
            Failing.left -= 1
            if Failing.left < 0:
                raise RuntimeError("down")
            return super()._replies(prompt)

    out, settings = tmp_path / "probe", ProbeSettings()
    with Findings(out, QUESTIONS, {}) as findings:
        asyncio.run(findings.collect(partial(examine, model=Failing(script), settings=settings), concurrency=1))
        assert len(findings.missing) > KNOWN
        with refused(InvalidInput, varies=r"\d+ (?:questions )?of \d+"):
            findings.finish(settings, ORIGIN)
    with Findings(out, QUESTIONS, {}) as findings:
        asyncio.run(findings.collect(partial(examine, model=Scripted(script), settings=settings)))
        findings.finish(settings, ORIGIN)
    with Findings(tmp_path / "undisturbed", QUESTIONS, {}) as findings:
        asyncio.run(findings.collect(partial(examine, model=Scripted(script), settings=settings)))
        findings.finish(settings, ORIGIN)
    assert (out / FINDINGS).read_bytes() == (tmp_path / "undisturbed" / FINDINGS).read_bytes()


def test_refused(tmp_path: Path) -> None:
    with refused(InvalidSetting):
        ProbeSettings(sites=())
    with refused(InvalidSetting):
        ProbeSettings(layers=(-1,))
    with refused(InvalidInput):
        Findings(tmp_path / "x", [Question("q", "Who?")], {})
