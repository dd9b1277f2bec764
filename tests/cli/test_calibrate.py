"""``gnothi calibrate``, and ``--calibration`` of ``ask`` and ``eval``, with a scripted model."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gnothi import lab
from gnothi.calibration.file import Calibration, read
from gnothi.config import read_settings
from gnothi.events import Decided
from gnothi.methods.planned import plan_methods
from gnothi.models.identity import Identity
from gnothi.runs.folder import read_config
from gnothi.session.asking import probability_wrong
from gnothi.session.plan import Request, resolve
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Prompt
from tests.cli.test_gates import recorded
from tests.command_line import Json, Run
from tests.messages import complained

__all__ = ["recorded"]

LIVE = ("--method", "seakr", "--limit", "60", "--set", "form=simple", "--set", "signal.samples=4")


def test_a_guarantee_from_recorded_outcomes(gnothi_json: Json, recorded: str, tmp_path: Path) -> None:
    out = tmp_path / "made.toml"
    found = gnothi_json("calibrate", recorded, "--signal", "perplexity", "--target-error", "0.1", "--out", str(out))
    assert 1.5 < found["gate"]["threshold"] < 2.1
    assert found["guarantee"]["tested"] == 96
    assert found["guarantee"]["p"] <= 0.1
    assert found["model"] == {"name": "", "fingerprint": "", "precision": ""}
    assert found["data"]["questions"] == 120
    assert tomllib.loads(out.read_text(encoding="utf-8")) == found


def test_by_worth_and_with_a_diagram(gnothi: Run, recorded: str, tmp_path: Path) -> None:
    out, diagram = tmp_path / "made.toml", tmp_path / "made.png"
    code, shown, err = gnothi(
        *("calibrate", recorded, "--signal", "energy_score", "--search-cost", "0.1", "--out", str(out), "--plot", str(diagram))
    )
    assert (code, err) == (0, "")
    assert diagram.read_bytes().startswith(b"\x89PNG")
    assert max(len(line) for line in shown.splitlines() if not line.startswith("calibration: ")) <= 80
    assert "energy_score: retrieve below 2" in shown
    assert "worth (chosen at a price of 0.1 a retrieval" in shown
    assert tomllib.loads(out.read_text(encoding="utf-8"))["gate"]["fires"] == "below"


def test_to_retrieve_always_is_no_number(gnothi_json: Json, recorded: str, tmp_path: Path) -> None:
    always = [
        json.loads(line) | {"no_retrieval": "Rome", "one_retrieval": "Paris"}
        for line in Path(recorded).read_text("utf-8").splitlines()
    ]
    Path(recorded).write_text("\n".join(map(json.dumps, always)), encoding="utf-8")
    found = gnothi_json("calibrate", recorded, "--signal", "perplexity", "--out", str(tmp_path / "made.toml"))
    assert found["gate"]["threshold"] is None
    assert read(tmp_path / "made.toml").threshold == float("-inf")


def test_what_cannot_be_promised_is_refused_with_a_number(gnothi: Run, recorded: str, tmp_path: Path) -> None:
    out = tmp_path / "made.toml"
    complained(gnothi("calibrate", recorded, "--signal", "perplexity", "--target-error", "0.01", "--out", str(out)))
    assert not out.exists()


@pytest.mark.parametrize(
    "arguments",
    ["--target-error 0.3", "--signal gram", "--signal perplexity --target-error 1.5", "--signal perplexity --plot picture.xyz"],
)
def test_mistakes(gnothi: Run, recorded: str, tmp_path: Path, arguments: str) -> None:
    complained(gnothi("calibrate", recorded, *arguments.split(), "--out", str(tmp_path / "made.toml")))


@pytest.mark.parametrize(
    "flags",
    ["--limit 30", "--set signal.samples=5", "--index lab", "--graph lab", "--workers 2", "--no-cache", "--method seakr"],
)
def test_flags_that_would_count_for_nothing(gnothi: Run, recorded: str, tmp_path: Path, flags: str) -> None:
    out = tmp_path / "made.toml"
    complained(gnothi("calibrate", recorded, "--signal", "perplexity", *flags.split(), "--out", str(out)))
    assert not out.exists()


def test_a_file_may_name_its_answers_as_it_likes(gnothi_json: Json, recorded: str, tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text(Path(recorded).read_text().replace("no_retrieval", "closed").replace("one_retrieval", "open"))
    rest = ("--signal", "perplexity", "--out", str(tmp_path / "made.toml"))
    made = gnothi_json("calibrate", str(own), "--never", "closed", "--always", "open", *rest)
    assert made["gate"]["threshold"] == gnothi_json("calibrate", recorded, *rest)["gate"]["threshold"]


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize(
    "arguments",
    [
        "lob",
        "lab --method direct",
        "lab --method cascade",
        "lab --method skill_rag",
        "lab --method compose",
        "lab --method compose --set gate=never",
        "lab --never direct",
        "lab --signal perplexity",
        "lab --metric contained",
        "lab --method panel --metric contained",
    ],
)
def test_a_data_set_is_named_wrongly_or_a_method_has_no_gate(gnothi: Run, tmp_path: Path, arguments: str) -> None:
    complained(gnothi("calibrate", *arguments.split(), "--out", str(tmp_path / "made.toml")))


def test_live_and_used(scripted: Scripted, gnothi: Run, gnothi_json: Json, tmp_path: Path) -> None:
    """Half of the questions are known: the script answers them rightly and surely."""
    known = teach(scripted)
    out = tmp_path / "made.toml"
    command = ("calibrate", "lab:one_hop", *LIVE, "--target-error", "0.2", "--out", str(out))
    made = gnothi_json(*command)
    assert made["gate"]["signal"] == "gram"
    assert made["gate"]["settings"]["signal.samples"] == 4
    assert made["model"]["name"] == "lab"
    assert made["model"]["fingerprint"]
    assert made["sample"]["wrong_from_memory"] == 60 - len(known)
    assert made["guarantee"]["wrong"] <= 2  # of about 24 that are known
    asked = len(scripted.prompts)
    assert gnothi_json(*command)["gate"] == made["gate"]
    assert len(scripted.prompts) == asked  # everything was kept

    run = str(tmp_path / "run")
    evaluate = ("eval", "lab:one_hop", *LIVE, "--calibration", str(out), "--out", run)
    code, _, err = gnothi(*evaluate)
    assert code == 0
    assert "seakr: threshold" in err
    assert "calibrated on 60 questions of lab:one_hop" in err
    assert f"warning: the threshold of {out} was chosen on questions of lab:one_hop" in err
    assert read_config(Path(run))["method.seakr.threshold"] == made["gate"]["threshold"]

    for more in (
        ("--model", "openai:other"),
        ("--set", "threshold=-3"),
        ("--set", "signal.samples=5"),
        ("--set", "signal=perplexity"),
        ("--set", "signal=consistency"),
    ):
        complained(gnothi(*evaluate, *more))
    assert "threshold" in gnothi(*evaluate[:-1], str(tmp_path / "other"), "--set", "signal.samples=5", "--ignore-mismatch")[2]
    _, shown, _ = gnothi("ask", known[0], "--set", "form=simple", "--set", "signal.samples=4", "--calibration", str(out))
    assert f"{made['gate']['threshold']:.2f}" in shown


def test_drawing_stops_where_a_calibration_says_so(scripted: Scripted, gnothi: Run, gnothi_json: Json, tmp_path: Path) -> None:
    known = teach(scripted)
    out, run = tmp_path / "made.toml", tmp_path / "run"
    command = ("calibrate", "lab:one_hop", *LIVE, "--target-error", "0.2", "--stop-early", "--out", str(out))
    made = gnothi_json(*command)
    assert made["stopping"]["samples"] < 0.5
    assert "1: " in made["gate"]["stopping"]
    assert "signal.stopping" not in made["gate"]["settings"]
    assert {path.name for path in (tmp_path / "made.toml.runs").iterdir()} == {"twice"}
    assert "of the samples are drawn" in " ".join(gnothi(*command)[1].split())
    (drawn,) = json.loads((tmp_path / "made.toml.runs" / "twice" / "rows.jsonl").read_text("utf-8").splitlines()[0])[
        "decisions"
    ]
    assert [len(scores) for scores in drawn["draws"]] == [4, 4]

    evaluate = ("eval", "lab:one_hop", *LIVE, "--calibration", str(out), "--out", str(run))
    code, _, err = gnothi(*evaluate)
    assert code == 0
    assert "drawing samples until it is decided" in err
    assert read_config(run)["method.seakr.signal.stopping"] == made["gate"]["stopping"]
    rows = [json.loads(line) for line in (run / "rows.jsonl").read_text("utf-8").splitlines()]
    assert {one["samples"] for row in rows for one in row["decisions"]} <= {1, 2}
    assert {row["question"] for row in rows if not row["cost"]["retrievals"]} == set(known)
    _, shown, _ = gnothi("ask", known[0], *LIVE[:2], *LIVE[4:], "--calibration", str(out))
    assert re.search(r"after \d samples?: ", shown)
    complained(gnothi("calibrate", str(run), "--out", str(tmp_path / "other.toml"), "--never", "seakr", "--always", "seakr"))


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize(
    "arguments",
    [
        "lab --method panel",
        "lab --method keqa",
        "lab --method seakr --set signal=perplexity",
        "lab --method seakr --set signal.samples=4 --set signal.stopping=often",
        "--feedback FILE --target-error 0.1",
    ],
)
def test_where_there_is_no_drawing_to_stop(gnothi: Run, tmp_path: Path, arguments: str) -> None:
    (tmp_path / "feedback.jsonl").touch()
    given = arguments.replace("FILE", str(tmp_path / "feedback.jsonl")).split()
    complained(gnothi("calibrate", *given, "--stop-early", "--out", str(tmp_path / "made.toml")))


def test_ask_says_how_probably_an_answer_from_memory_is_wrong(
    scripted: Scripted, gnothi: Run, gnothi_json: Json, tmp_path: Path
) -> None:
    known = teach(scripted)
    unknown = next(one.text for one in lab.questions(lab.world(), "one_hop", 60) if one.text not in known)
    out = tmp_path / "made.toml"
    gnothi_json("calibrate", "lab:one_hop", *LIVE, "--target-error", "0.2", "--out", str(out))
    settings = ("--set", "form=simple", "--set", "signal.samples=4")
    given = (*settings, "--calibration", str(out))
    found = json.loads(gnothi("ask", known[0], *given, "--json")[1])
    (decision,) = found["decisions"]
    expected = read(out).probability_wrong(decision["score"])
    assert expected is not None
    assert found["probability_wrong"] == pytest.approx(expected)
    assert found["probability_wrong"] < 0.1
    assert f"P(wrong) {expected:.2f} for an answer from memory" in gnothi("ask", known[0], *given)[1]
    assert "probability_wrong" not in gnothi_json("ask", known[0], *settings)
    looked_up = json.loads(gnothi("ask", unknown, *given, "--json")[1])
    assert (looked_up["retrievals"] > 0, looked_up["probability_wrong"]) == (True, None)
    assert "P(wrong)" not in gnothi("ask", unknown, *given)[1]


@pytest.mark.parametrize(
    ("seen", "schedule", "told"),
    [
        ([0.2, 0.9], "at_once", True),
        ([0.2, 0.9], "in_turn", True),
        ([0.2, 0.9], "waves", False),
        ([], "at_once", False),
        ([0.2, None], "at_once", False),
    ],
)
def test_where_the_curve_says_nothing(seen: list[float | None], schedule: str, told: bool) -> None:
    curves = {"scores": "as recorded", "platt": {"slope": 2.0, "intercept": 0.5}}
    made = Calibration(
        "keqa", "consistency", 0.5, Identity("m"), "d", 100, "em", "2026-11-22", details={"probabilities": curves}
    )
    decided = [Decided("retrieve", "consistency", score, 0.5, "trust") for score in seen]
    settings = read_settings(overrides=[f"schedule={schedule}"])
    planned = resolve(Request(["keqa"], settings=settings))
    found = probability_wrong(replace(planned, calibration=made), decided)
    assert found == (made.probability_wrong(0.9) if told else None)


def test_live_by_worth_asks_with_the_gate_open_too(scripted: Scripted, gnothi_json: Json, tmp_path: Path) -> None:
    teach(scripted)
    out = tmp_path / "made.toml"
    made = gnothi_json("calibrate", "lab:one_hop", *LIVE, "--set", "query=question", "--out", str(out))
    assert {path.name for path in (tmp_path / "made.toml.runs").iterdir()} == {"shut", "open"}
    assert made["worth"]["never"] < made["worth"]["oracle"]
    rows = [json.loads(line) for line in (tmp_path / "made.toml.runs" / "open" / "rows.jsonl").read_text("utf-8").splitlines()]
    assert all(row["cost"]["retrievals"] == 1 for row in rows)


def test_facts_of_a_graph_and_how_many_are_asked_at_a_time(scripted: Scripted, gnothi: Run, tmp_path: Path) -> None:
    teach(scripted)
    iekr = ("--method", "iekr", "--set", "gate=perplexity", "--set", "choose=text", "--set", "source=graph")
    command = ("calibrate", "lab:one_hop", *iekr, "--limit", "20", "--model", "some/model", "--out")
    complained(gnothi(*command, str(tmp_path / "none.toml")))
    code, _, err = gnothi(*command, str(tmp_path / "made.toml"), "--graph", "lab", "--concurrency", "3")
    assert (code, len(err.splitlines())) == (0, 1), err  # what is asked
    written = read_config(tmp_path / "made.toml.runs" / "open")
    assert (written["graph"], written["execution.concurrency"]) == ("lab", 3)


@pytest.mark.usefixtures("scripted")
def test_several_processes_do_not_wait_for_one_server(gnothi: Run, tmp_path: Path) -> None:
    complained(
        gnothi("calibrate", "lab", "--model", "openai:x", "--index", "lab", "--workers", "2", "--out", str(tmp_path / "m"))
    )


def test_it_is_of_the_model_that_the_gate_listens_to(
    scripted: Scripted, gnothi: Run, gnothi_json: Json, tmp_path: Path
) -> None:
    teach(scripted)
    out, run = str(tmp_path / "made.toml"), str(tmp_path / "run")
    method = "--method slimplm --limit 30 --set slimplm.judgement=perplexity --set slimplm.proxy=some/proxy".split()
    made = gnothi_json("calibrate", "lab:one_hop", *method, "--search-cost", "0.1", "--out", out)
    assert made["model"]["name"] == "some/proxy"
    code, _, err = gnothi("eval", "lab:one_hop", *method, "--method", "cot,rag", "--calibration", out, "--out", run)
    assert (code, "slimplm: threshold" in err) == (0, True)
    assert gnothi_json("calibrate", run, "--out", out)["model"]["name"] == "some/proxy"
    assert gnothi_json("calibrate", run, "--model", "lab", "--out", out)["model"]["name"] == "some/proxy"  # the run's model
    assert "scores of" in gnothi("calibrate", run, "--model", "some/other", "--out", out)[2]


def test_questions_that_fail_are_told_counted_and_tried_again(
    scripted: Scripted, gnothi: Run, gnothi_json: Json, tmp_path: Path
) -> None:
    known = teach(scripted)
    works = scripted._script

    def breaks(prompt: Prompt) -> Any:
        if prompt.question in known[:5]:
            raise ValueError("no answer to this one.")
        return works(prompt) if callable(works) else None

    scripted._script = breaks
    out, run = tmp_path / "made.toml", tmp_path / "run"
    command = ("calibrate", "lab:one_hop", *LIVE, "--target-error", "0.3", "--out", str(out))
    code, _, err = gnothi(*command, "--max-failures", "2")
    assert (code, out.exists()) == (1, False)
    assert "stopped: 3 questions failed" in err
    code, printed, err = gnothi(*command, "--json")
    assert code == 1
    assert "warning: 5 questions of lab:one_hop failed and are left out (the first with ValueError: no answer" in err
    assert "come from the other 55" in err
    made = json.loads(printed)
    assert (made["data"]["questions"], made["data"]["failures"]) == (55, 5)
    assert read(out).failures == 5
    assert gnothi("eval", "lab:one_hop", *LIVE, "--method", "cot,rag", "--out", str(run))[0] == 1
    code, shown, err = gnothi("calibrate", str(run), "--search-cost", "0.1", "--out", str(tmp_path / "other.toml"))
    assert (code, "5 questions of lab:one_hop failed" in err, "of 55 questions" in shown) == (1, True, True)

    scripted._script = works
    assert gnothi_json(*command)["data"] | {"fingerprint": ""} == {
        "name": "lab:one_hop", "fingerprint": "", "questions": 60, "failures": 0, "answers_of": "seakr", "metric": "em",
    }  # fmt: skip


def test_keqa_by_the_agreement_of_its_tries(scripted: Scripted, gnothi: Run, tmp_path: Path) -> None:
    """Its alpha is what the threshold of its disagreement leaves of 1."""
    questions = lab.questions(lab.world(), "one_hop", 500)[:60]
    truth = {question.text: question.answers[0] for question in questions}
    known = {question.text for question in questions[::2]}

    def script(prompt: Prompt) -> list[str]:
        if prompt.task.name == "equivalent":
            return ["No."]
        sure = prompt.passages or prompt.question in known
        return [f"{truth[prompt.question]}."] if sure else ["One.", "Another.", "Some other."]

    scripted._script = script
    out, run = tmp_path / "made.toml", str(tmp_path / "run")
    keqa = ("--method", "keqa", "--limit", "60", "--set", "decompose=false", "--set", "pick=false", "--set", "tries=7")
    made, err = gnothi(
        "calibrate", "lab:one_hop", *keqa, "--target-error", "0.2", "--search-cost", "0.1", "--out", str(out), "--json"
    )[1:]
    assert "fires" not in err  # its gate is held shut, then open: no warning of that
    made = json.loads(made)
    assert (made["gate"]["method"], made["gate"]["signal"]) == ("keqa", "consistency")
    assert made["gate"]["settings"] == {
        "tries": 7, "temperature": 1.0, "top_p": "none", "decompose": False, "judge": "none",
    }  # fmt: skip
    assert (made["sample"]["wrong_from_memory"], made["sample"]["trusted"]) == (30, 30)
    assert (made["worth"]["never"], made["worth"]["always"]) == (0.5, 1.0)
    open_ = [json.loads(line) for line in (tmp_path / "made.toml.runs" / "open" / "rows.jsonl").read_text("utf-8").splitlines()]
    assert all(row["cost"]["retrievals"] == 1 for row in open_)

    code, _, err = gnothi("eval", "lab:one_hop", *keqa, "--calibration", str(out), "--out", run)
    assert code == 0
    alpha = read_config(Path(run))["method.keqa.alpha"]
    assert f"for consistency (alpha = {alpha})" in err
    assert alpha * 7 == pytest.approx(round(alpha * 7))
    assert 1 - alpha <= made["gate"]["threshold"] + 1e-4
    rows = [json.loads(line) for line in (Path(run) / "rows.jsonl").read_text("utf-8").splitlines()]
    assert sum(row["cost"]["retrievals"] == 0 for row in rows) == 30
    several = ("--method", "keqa,cot,rag", "--set", "tries=7", "--limit", "10", "--out", str(tmp_path / "several"))
    assert gnothi("eval", "lab:one_hop", *several)[0] == 0
    said = gnothi("calibrate", str(tmp_path / "several"), "--method", "keqa", "--out", str(out))[2]
    assert "schedule=at_once" in said
    assert "every quiz is looked up" in gnothi("calibrate", "lab", *keqa, "--set", "assess=false", "--out", str(out))[2]


@pytest.mark.parametrize(("threshold", "alpha"), [(0.2857, 5 / 7), (0.0, 1.0), (0.4, 5 / 7), (float("inf"), 1 / 7)])
def test_the_share_of_a_threshold(threshold: float, alpha: float) -> None:
    gate = plan_methods(["keqa"], read_settings(overrides=["tries=7"]))[0].gate
    assert gate is not None
    assert gate.at(threshold) == {"alpha": pytest.approx(alpha)}
    assert gate.at(float("-inf")) == {"assess": False}


def test_a_run_needs_no_model(scripted: Scripted, gnothi: Run, gnothi_json: Json, tmp_path: Path) -> None:
    teach(scripted)
    run, out = str(tmp_path / "run"), tmp_path / "made.toml"
    assert gnothi("eval", "lab:one_hop", *LIVE, "--method", "cot,rag", "--out", run)[0] == 0
    asked = len(scripted.prompts)
    made = gnothi_json("calibrate", run, "--target-error", "0.2", "--search-cost", "0.1", "--out", str(out))
    assert len(scripted.prompts) == asked
    assert (made["gate"]["method"], made["gate"]["signal"], made["gate"]["settings"]["signal.samples"]) == ("seakr", "gram", 4)
    assert (made["model"]["name"], made["data"]["name"], made["data"]["questions"]) == ("lab", "lab:one_hop", 60)
    assert made["gate"]["threshold"] in made["guarantee"]["accepted"]
    assert made["worth"]["price"] == 0.1
    assert made["data"]["answers_of"] == "cot"
    code, shown, _ = gnothi("calibrate", run, "--target-error", "0.2", "--out", str(out))
    assert "all of this is about the answers of cot, and of seakr only as far" in " ".join(shown.split())
    shut = str(tmp_path / "made.toml.runs")
    assert gnothi("eval", "lab:one_hop", *LIVE, "--method", "rag", "--set", "seakr.threshold=inf", "--out", shut)[0] == 0
    code, shown, _ = gnothi("calibrate", shut, "--target-error", "0.2", "--out", str(out))
    assert (code, "all of this" in shown, read(out).answers_of) == (0, False, "seakr")
    complained(gnothi("calibrate", run, "--method", "keqa", "--out", str(out)))


def teach(scripted: Scripted) -> list[str]:
    """Every other question of the data set is known, and all are with a passage. Returns the texts of the known ones."""
    questions = lab.questions(lab.world(), "one_hop", 500)[:60]
    truth = {question.text: question.answers[0] for question in questions}
    answers = {question.text: question.answers[0] for question in questions[::2]}

    def script(prompt: Prompt) -> Reply:
        sure = prompt.question in answers or bool(prompt.passages)
        answer = truth.get(prompt.question, "nobody") if sure else "nobody"
        said = f"{answer}." if prompt.answer_so_far.endswith("the answer is") else f"So the answer is {answer}."
        return Reply(said, doubt=0.0 if sure else 5.0)

    scripted._script = script
    return list(answers)


def _one_hop(count: int) -> dict[str, str]:
    return {question.text: question.answers[0] for question in lab.questions(lab.world(), "one_hop", 500)[:count]}


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("nobody", "of 20 questions none is right, neither from memory nor with a search"),
        (
            "Many old books tell us that it was {} back then.",
            "answers read like sentences, so that it counts 0% of them as right, though a right answer occurs in 100%",
        ),
    ],
)
def test_where_the_metric_sees_nothing_right_nothing_is_written(
    scripted: Scripted, gnothi: Run, tmp_path: Path, sentence: str, said: str
) -> None:
    truth = _one_hop(20)
    scripted._script = lambda prompt: sentence.format(truth[prompt.question])
    run, out = str(tmp_path / "run"), tmp_path / "made.toml"
    asked = ("--limit", "20", "--set", "reason=false", "--set", "form=simple", "--set", "signal.samples=2")
    assert gnothi("eval", "lab:one_hop", "--method", "direct,rag,seakr", *asked, "--out", run)[0] == 0
    for dataset, more in ((run, ("--never", "direct")), ("lab:one_hop", (*asked, "--method", "seakr"))):
        code, shown, err = gnothi("calibrate", dataset, *more, "--out", str(out))
        assert (code, shown, out.exists()) == (2, "", False), err
        assert said in " ".join(err.split())
        assert "--metric accuracy" in err


def test_where_memory_is_never_right_the_gate_always_searches(scripted: Scripted, gnothi: Run, tmp_path: Path) -> None:
    truth = _one_hop(20)
    scripted._script = lambda prompt: truth[prompt.question] if prompt.passages else "nobody"
    run, out = str(tmp_path / "run"), tmp_path / "made.toml"
    asked = ("--limit", "20", "--set", "reason=false", "--set", "form=simple", "--set", "signal.samples=2")
    assert gnothi("eval", "lab:one_hop", "--method", "direct,rag,seakr", *asked, "--out", run)[0] == 0
    code, shown, err = gnothi("calibrate", run, "--out", str(out))
    assert (code, err) == (0, "")
    assert "gram: retrieve always (of 20 questions of lab:one_hop, 0.0% are trusted)" in " ".join(shown.split())
    assert "recommended: always search. No answer from memory is fully right here" in " ".join(shown.split())
    assert read(out).threshold == float("-inf")


def test_by_one_command_every_signal_and_the_best_one(
    scripted: Scripted, gnothi: Run, gnothi_json: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teach(scripted)
    monkeypatch.chdir(tmp_path)
    given = ("--method", "panel", "--limit", "60", "--set", "signal.samples=2")
    command = ("calibrate", "lab:one_hop", *given, "--search-cost", "0.05")
    code, shown, err = gnothi(*command)
    assert code == 0, err
    assert "60 questions are asked from memory, then with a search" in err
    assert "panel-lab-one_hop.toml.runs: run the same command again" in " ".join(err.split())
    assert "is worth most on questions that its threshold was not chosen on" in " ".join(shown.split())
    assert "recommended: this gate. Against always searching it saves" in shown
    made = read(tmp_path / "panel-lab-one_hop.toml")
    assert made.method == "panel"
    asked = len(scripted.prompts)
    assert gnothi_json(*command)["gate"]["signal"] == made.signal
    assert gnothi_json(*command, "--signal", "perplexity")["gate"]["signal"] == "perplexity"
    assert len(scripted.prompts) == asked
