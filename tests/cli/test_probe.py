"""``gnothi train probe``, and what is told to those who use a probe amiss."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from gnothi import lab
from gnothi.models.wrappers import Seeded, Traced, Wrapper
from gnothi.session import sources
from gnothi.signals.probe_folder import HEADER
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Capabilities, Decoding, Generation, Profile, Prompt, Question
from tests.command_line import Json, Run, stand_in
from tests.messages import complained

COMMAND = ("train", "probe", "lab-train", "--limit", "60")
ASKED = "Who directed The Amber Harbour?"


@cache
def training() -> dict[str, tuple[int, Question]]:
    return {one.text: (number, one) for number, one in enumerate(lab.training_questions(lab.world(), None, 500))}


def script(prompt: Prompt) -> Reply:
    """Knows every other training question."""
    number, question = training().get(prompt.question, (1, None))
    if question is not None and number % 2 == 0:
        return Reply(f"So the answer is {question.answers[0]}.")
    return Reply("So the answer is nobody.", doubt=5.0)


@pytest.fixture(autouse=True)
def _few_to_choose_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ridges and strengths, which tests of the fit choose among."""
    monkeypatch.setattr("gnothi.training.probe.fit.RIDGES", (0.1, 100.0))
    monkeypatch.setattr("gnothi.training.probe.fit.STRENGTHS", (1.0,))


@pytest.fixture
def halves(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    model = Scripted(script, name="lab")
    monkeypatch.setattr(sources, "open_model", stand_in(model))
    return model


def test_a_probe_is_made_once_and_used(halves: Scripted, gnothi: Run, tmp_path: Path) -> None:
    out = str(tmp_path / "probe")
    code, said, err = gnothi(*COMMAND, "--out", out)
    assert code == 0, err
    for part in (
        "questions   60: 30 answered wrongly",
        "reads       the last state of the prompt",
        "\n  probe     ",
        "\n  question  ",
    ):
        assert part in said
    asked = len(halves.prompts)
    assert gnothi(*COMMAND, "--out", out) == (code, said, err)
    assert len(halves.prompts) == asked
    assert "questions   64:" in gnothi(*COMMAND[:-1], "64", "--out", out)[1]  # goes on with more questions
    assert len(halves.prompts) - asked == 4 * asked // 60
    code, said, err = gnothi("ask", ASKED, "--method", "compose", "--set", "gate=probe", "--set", f"signal.probe={out}")
    assert code == 0, err
    assert "probe 1.00 > 0.50: unsure, retrieve" in said
    assert gnothi("ask", ASKED, "--set", "signal=question", "--set", f"signal.probe={out}")[0] == 0


class Layered(Wrapper):
    """Has four layers and says so; questions in whose text ``trouble`` finds something fail."""

    profile = Profile(layers=4)

    def __init__(self, trouble: Callable[[str], object]) -> None:
        super().__init__(Scripted(script, name="lab"))
        self.trouble = trouble

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        if self.trouble(prompt.question):
            raise RuntimeError("the lamp is out")
        return await super().generate(prompt, decoding)


def test_a_layer_that_the_model_does_not_have(monkeypatch: pytest.MonkeyPatch, gnothi: Run, tmp_path: Path) -> None:
    monkeypatch.setattr(sources, "open_model", lambda *_, **__: Traced(Seeded(Layered(lambda _: False))))
    out = tmp_path / "probe"
    code, said, err = gnothi(*COMMAND, "--out", str(out), "--set", "layers=1,99")
    assert (code, said, out.exists()) == (2, "", False)
    assert "setting 'layers': got 99, expected 0 to 3 for the model lab" in err
    assert gnothi(*COMMAND, "--out", str(out), "--set", "layers=1,3")[0] == 0


def test_it_says_why_questions_failed(monkeypatch: pytest.MonkeyPatch, gnothi: Run, tmp_path: Path) -> None:
    def train(trouble: Callable[[int], object]) -> tuple[int, str, str]:
        model = Layered(lambda text: trouble(training()[text][0]))
        monkeypatch.setattr(sources, "open_model", lambda *_, **__: Traced(Seeded(model)))
        return gnothi(*COMMAND, "--out", str(tmp_path / "probe"), "--set", "layers=2", "--set", "prompts=draft")

    code, said, err = train(lambda _: True)
    assert (code, said) == (1, "")
    assert "60 of 60 questions failed, all with RuntimeError: the lamp is out" in err
    code, said, err = train(lambda number: number >= 8)
    assert (code, said) == (2, "")
    assert "got 4 questions of 8 that are answered wrongly" in err
    assert "52 of 60 questions failed, all with RuntimeError: the lamp is out" in err
    code, said, err = train(lambda number: number == 9)
    assert (code, "questions   59, 1 failed" in said) == (1, True)
    assert "warning: 1 of 60 questions failed, all with RuntimeError: the lamp is out" in err
    assert train(lambda _: False)[0] == 0


@pytest.mark.usefixtures("halves")
def test_json_is_what_the_header_says(gnothi_json: Json, tmp_path: Path) -> None:
    about = gnothi_json(*COMMAND, "--out", str(tmp_path / "p"), "--set", "target=uncertainty", "--set", "signal.samples=3")
    header = json.loads((tmp_path / "p" / HEADER).read_text())
    assert header.items() >= about.items()
    assert about["target"]["signal"] == "gram"
    assert about["cost"]["gram"]["generated_tokens"] > about["cost"]["probe"]["generated_tokens"] == 0
    assert about["model"]["name"] == "lab"
    assert about["model"]["fingerprint"]


def test_a_model_without_states_gives_the_question_only(monkeypatch: pytest.MonkeyPatch, gnothi: Run, tmp_path: Path) -> None:
    model = Scripted(script, name="lab", capabilities=Capabilities())
    monkeypatch.setattr(sources, "open_model", lambda spec, settings=None: Traced(Seeded(model)))  # noqa: ARG005
    code, said, err = gnothi(*COMMAND, "--out", str(tmp_path / "p"))
    assert code == 0, err
    assert "only the signal question was learnt" in err
    assert "reads" not in said
    ask = ("ask", ASKED, "--method", "compose", "--set", f"signal.probe={tmp_path / 'p'}")
    assert gnothi(*ask, "--set", "gate=question")[0] == 0
    model.capabilities = Capabilities(hidden_states=True)
    complained(gnothi(*ask, "--set", "gate=probe"))


@pytest.mark.usefixtures("halves")
def test_what_is_refused(gnothi: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = str(tmp_path / "probe")

    complained(gnothi("train", "probe", "lab", "--out", out))
    complained(gnothi(*COMMAND, "--out", out, "--set", "sites=attention"))
    complained(gnothi(*COMMAND, "--out", out, "--set", "layer_s=1"))
    assert gnothi(*COMMAND, "--out", out)[0] == 0
    complained(gnothi(*COMMAND, "--out", out, "--set", "target=uncertainty"))

    def never(*_: object, **__: object) -> object:
        raise AssertionError("a model was opened")

    with monkeypatch.context() as patch:
        patch.setattr(sources, "open_model", never)
        ask = ("ask", ASKED, "--method", "compose")
        complained(gnothi(*ask, "--set", "gate=probe"))
        complained(gnothi("ask", ASKED, "--set", "signal=question"))
        complained(gnothi(*ask, "--set", f"signal.probe={out}"))
        complained(gnothi(*ask, "--set", "gate=probe", "--set", f"signal.probe={tmp_path}"))
        use = (*ask, "--set", "gate=probe", "--set", f"signal.probe={out}")
        complained(gnothi(*use, "--model", "other", "--index", "lab"))
        complained(gnothi(*use, "--set", "reason=false"))
        evaluate = ("eval", "lab", "--limit", "1", "--out", str(tmp_path / "run"))
        learnt = ("--set", "signal=probe", "--set", f"signal.probe={out}")
        complained(gnothi(*evaluate, "--model", "other", "--index", "lab", *learnt))
        calibrate = ("calibrate", "lab-train", "--out", str(tmp_path / "c.toml"))
        complained(gnothi(*calibrate, "--model", "other", "--index", "lab", *learnt))
    shut = ("--method", "compose", "--limit", "30", "--target-error", "0.9", "--set", "gate=probe", f"--set=signal.probe={out}")
    assert "learnt from questions of lab-train" in gnothi(*calibrate, *shut)[2]
    assert gnothi(*use, "--set", "reason=false", "--ignore-mismatch")[0] == 0
    assert gnothi(*use, "--model", "other", "--index", "lab", "--ignore-mismatch")[0] == 0
