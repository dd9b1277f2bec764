"""``gnothi reproduce`` with a scripted model in place of the laboratory's."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from gnothi.calibration.file import Calibration
from gnothi.models.identity import Identity
from gnothi.reproduce import recipe as recipes
from gnothi.runs.folder import read_config, read_rows
from gnothi.session import sources
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Capabilities, Prompt
from tests.command_line import Json, Run, script, stand_in
from tests.messages import complained
from tests.stopping import Stopping

ABLATIONS = [name for name in recipes.names() if "/" not in name]
MINE = """
title = "What SeaKR's parts are worth"
dataset = "lab:one_hop"
note = "A note on it."

[settings]
max_steps = 3
signal.samples = 4

[[variant]]
label = "SeaKR"
method = "seakr"
paper.NQ = { em = 25.6 }

[[variant]]
group = "Parts"
label = "− re-ranking"
method = "seakr"
settings = { rerank = false }
paper.NQ = { em = 24.8 }

[[variant]]
group = "Others"
label = "retrieve once"
method = "rag"
settings = { k = 2 }

[[variant]]
group = "Others"
label = "nearest neighbours"
method = "skr"
needs.reference = "a folder made by gnothi train knowledge-reference."
"""


@pytest.fixture
def mine(tmp_path: Path) -> str:
    file = tmp_path / "mine.toml"
    file.write_text(MINE, encoding="utf-8")
    return str(file)


def edited(mine: str, old: str, new: str) -> str:
    text = Path(mine).read_text(encoding="utf-8")
    assert old in text
    Path(mine).write_text(text.replace(old, new, 1), encoding="utf-8")
    return mine


# --- listing ---------------------------------------------------------------------------------------------------------


def test_studies_and_their_variants_are_listed(gnothi: Run, gnothi_json: Json, mine: str) -> None:
    code, out, err = gnothi("list", "recipes")
    assert (code, err) == (0, "")
    assert all(f"\n  {name} " in f"\n{out}" for name in ABLATIONS)
    code, out, _ = gnothi("reproduce", mine)
    assert code == 0
    flat = " ".join(out.split())
    for said in (
        "* SeaKR",
        "− re-ranking seakr rerank=false",
        "all set max_steps=3 signal.samples=4",
        "skr; needs reference: a folder",
        "A note",
    ):
        assert said in flat
    assert "install" not in flat
    found = gnothi_json("reproduce", mine)
    assert [row["folder"] for row in found["rows"]] == [
        "seakr",
        "re-ranking",
        "retrieve-once",
        "nearest-neighbours",
    ]


def test_a_calibration_that_cannot_be_read_or_is_for_nothing_is_refused(gnothi: Run, mine: str, tmp_path: Path) -> None:
    file = tmp_path / "gate.toml"
    complained(gnothi("reproduce", mine, "--calibration", str(file), "--out", str(tmp_path / "runs")))
    made = Calibration("seakr", "energy", 1.0, Identity("lab"), "train", 9, "em", "2026-11-23")
    made.save(file)
    complained(gnothi("reproduce", mine, "--calibration", str(file), "--out", str(tmp_path / "runs")))


def test_what_a_study_needs_beyond_the_core_is_told(gnothi: Run) -> None:
    flat = " ".join(gnothi("list", "recipes")[1].split())
    assert flat.count("; needs gnothi[dense]") == 3
    for name in ("iekr", "iekr_m", "iekr_rag"):
        assert "install pip install 'gnothi[dense]'" in " ".join(gnothi("reproduce", name)[1].split())


@pytest.mark.parametrize("name", ABLATIONS)
def test_every_study_with_a_re_ranker_names_its_extra(name: str) -> None:
    found = recipes.read(name)
    given = [found.study.settings, *(variant.settings for variant in found.study.variants)]
    ranked = any(key.rpartition(".")[2] == "reranker" and value != "none" for one in given for key, value in one.items())
    assert ranked == (found.extras == ("dense",))


# --- running ---------------------------------------------------------------------------------------------------------


def test_a_study_is_run_and_its_runs_are_ordinary(
    scripted: Scripted, gnothi: Run, gnothi_json: Json, mine: str, tmp_path: Path
) -> None:
    out = tmp_path / "runs"
    files = [str(tmp_path / name) for name in ("t.csv", "t.md", "t.png")]
    flags = ("--csv", files[0], "--markdown", files[1], "--plot", files[2])
    found = gnothi_json("reproduce", mine, "--limit", "6", "--out", str(out), *flags)
    assert [variant["label"] for variant in found["variants"]] == ["SeaKR", "− re-ranking", "retrieve once"]
    assert (found["dataset"], found["questions"], found["full"]) == ("lab:one_hop", 6, "SeaKR")
    (left_out,) = found["left_out"]
    assert left_out["reason"].startswith("needs --set skr.reference=...: a folder made by")
    assert all(Path(file).stat().st_size for file in files)
    assert sorted(path.name for path in out.iterdir()) == ["re-ranking", "retrieve-once", "seakr"]

    asked = len(scripted.prompts)
    assert gnothi_json("reproduce", mine, "--limit", "6", "--out", str(out)) == found
    assert len(scripted.prompts) == asked  # finished variants are not run again

    # Each is what eval makes of the same settings, and eval goes on with it.
    same = ("--limit", "6", "--set", "max_steps=3", "--set", "signal.samples=4", "--set", "rerank=false")
    (method,) = gnothi_json("eval", "lab:one_hop", "--method", "seakr", *same, "--out", str(out / "re-ranking"))
    assert len(scripted.prompts) == asked
    assert method == json.loads((out / "re-ranking" / "summary.json").read_text(encoding="utf-8"))["methods"][0]
    (method,) = gnothi_json("eval", "lab:one_hop", "--method", "seakr", *same, "--out", str(tmp_path / "apart"))
    assert [row.comparable() for row in read_rows(tmp_path / "apart")] == [
        row.comparable() for row in read_rows(out / "re-ranking")
    ]
    variant = found["variants"][1]
    assert (method["em"], method["model_calls"], method["intervals"]["em"]) == (
        variant["em"],
        variant["model_calls"],
        variant["intervals"]["em"],
    )

    code, shown, _ = gnothi("report", *map(str, sorted(out.iterdir(), reverse=True)))
    assert code == 0
    places = [shown.index(f"\n{label} ") for label in ("SeaKR", "− re-ranking", "rag")]
    assert places == sorted(places)
    assert gnothi("calibrate", "--replay", str(out / "seakr"))[0] == 2  # it holds neither never nor always, and says so
    code, shown, _ = gnothi("report", *map(str, sorted(out.iterdir())), "--json", "--html", str(tmp_path / "page.html"))
    assert code == 0
    assert [method["method"] for method in json.loads(shown)[0]["methods"]] == ["SeaKR", "− re-ranking", "rag"]


@pytest.mark.usefixtures("scripted")
def test_the_table_fits_80_columns(gnothi: Run, mine: str, tmp_path: Path) -> None:
    code, out, err = gnothi("reproduce", mine, "--limit", "8", "--out", str(tmp_path / "runs"))
    assert (code, err) == (0, "")
    assert max(len(line) for line in out.splitlines() if not line.startswith("runs: ")) <= 80
    for said in (
        "− re-ranking",
        "(24.8)",
        "Parts",
        "left out: nearest neighbours needs",
        "note: A note on it.",
        "the paper's NQ EM",
    ):
        assert said in out


@pytest.mark.usefixtures("scripted")
def test_packaged_studies_run(gnothi_json: Json, tmp_path: Path) -> None:
    command = "reproduce seakr lab:one_hop --limit 2 --only LN-Entropy --set signal.samples=3 --out".split()
    found = gnothi_json(*command, str(tmp_path))
    assert [(one["label"], one["paper"][0]["value"]) for one in found["variants"]] == [("SeaKR", 31.4), ("LN-Entropy", 30.0)]
    assert read_config(tmp_path / "ln-entropy")["method.seakr.signal.samples"] == 3
    assert found["dataset"] == "lab:one_hop"


def test_a_model_is_opened_once_for_all_that_share_it(
    scripted: Scripted, gnothi_json: Json, mine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    def opening(spec: str, settings: object = None) -> Any:
        opened.append(spec)
        return stand_in(scripted)(spec, settings)

    monkeypatch.setattr(sources, "open_model", opening)
    edited(mine, "settings = { k = 2 }", 'settings = { k = 2 }\nmodel = "other"\nindex = "lab"')
    gnothi_json("reproduce", mine, "--limit", "3", "--out", str(tmp_path / "runs"))
    assert opened == ["lab", "other"]
    gnothi_json("reproduce", mine, "--limit", "3", "--out", str(tmp_path / "runs"))
    assert opened == ["lab", "other"]
    config = read_config(tmp_path / "runs" / "retrieve-once")
    assert (config["model.name"], config["execution.label"]) == ("other", "retrieve once")


@pytest.mark.usefixtures("scripted")
def test_what_is_common_and_what_is_a_variants_own(gnothi: Run, gnothi_json: Json, mine: str, tmp_path: Path) -> None:
    gnothi_json("reproduce", mine, "--limit", "2", "--out", str(tmp_path / "a"), "--set", "max_steps=2", "--set", "rerank=true")
    assert read_config(tmp_path / "a" / "seakr")["method.seakr.max_steps"] == 2
    assert read_config(tmp_path / "a" / "re-ranking")["method.seakr.rerank"] is False
    complained(gnothi("reproduce", mine, "--limit", "2", "--out", str(tmp_path / "b"), "--set", "rag.k=3"))
    assert not (tmp_path / "b").exists()
    complained(gnothi("reproduce", mine, "--limit", "2", "--out", str(tmp_path / "a")))


@pytest.mark.usefixtures("scripted")
def test_only_some_of_the_variants(gnothi_json: Json, gnothi: Run, mine: str, tmp_path: Path) -> None:
    arguments = ("reproduce", mine, "--limit", "3", "--out", str(tmp_path / "runs"))
    found = gnothi_json(*arguments, "--only", "retrieve once")
    assert [one["label"] for one in found["variants"]] == ["SeaKR", "retrieve once"]
    assert [one["label"] for one in gnothi_json(*arguments)["variants"]] == ["SeaKR", "− re-ranking", "retrieve once"]
    complained(gnothi(*arguments, "--only", "nearest neighbours"))
    assert "Did you mean 'SeaKR'" in gnothi(*arguments, "--only", "SeeKR")[2]


def test_failed_questions_give_exit_code_1_and_are_tried_again(
    scripted: Scripted, gnothi: Run, mine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("reproduce", mine, "--limit", "4", "--out", str(tmp_path / "runs"))
    with monkeypatch.context() as broken:
        broken.setattr(scripted, "_script", {})
        code, out, _ = gnothi(*arguments)
        assert code == 1
        assert "SeaKR: 4 of 4 questions failed" in " ".join(out.split())
        code, out, err = gnothi(*arguments, "--max-failures", "1", "--concurrency", "1", "--json")
        assert (code, out) == (1, "")
        assert "stopped: 2 questions failed" in err
    code, out, _ = gnothi(*arguments)
    assert code == 0
    assert "questions failed" not in out


@pytest.mark.parametrize(
    "arguments",
    [
        "sekr",
        "mine.toml",
        "MINE absent.jsonl",
        "MINE --set treshold=3",
        "MINE --set signal.samples=many",
        "MINE --model openai:x --index lab --workers 2",
        "MINE --model openai:x",
        "MINE --max-tokens 5",
    ],
)
def test_what_cannot_be_is_said_before_anything_is_made(
    scripted: Scripted, gnothi: Run, mine: str, tmp_path: Path, arguments: str
) -> None:
    given = [mine if one == "MINE" else one for one in arguments.split()]
    complained(gnothi("reproduce", *given, "--out", str(tmp_path / "runs")))
    assert not (tmp_path / "runs").exists()
    assert scripted.prompts == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('method = "rag"', 'method = "rga"'),
        ("rerank = false", "rerenk = false"),
        ("rerank = false", 'rerank = "maybe"'),
        ("rerank = false", "strategy = 3"),
        ("k = 2", "seakr.k = 2"),
        ("max_steps = 3", "max_stps = 3"),
        ('label = "SeaKR"', 'labl = "SeaKR"'),
        ("max_steps = 3", "keqa.tries = 3"),
        ("title", "needs = 3\ntitle"),
        ('label = "SeaKR"', 'label = "SeaKR"\nneeds.judge = "x"'),
    ],
)
def test_a_study_that_cannot_be_run_is_refused_by_file_and_key(
    scripted: Scripted, gnothi: Run, mine: str, tmp_path: Path, old: str, new: str
) -> None:
    complained(gnothi("reproduce", edited(mine, old, new), "--out", str(tmp_path / "runs")))
    assert not (tmp_path / "runs").exists()
    assert scripted.prompts == []


def test_a_variant_that_the_model_cannot_run_is_named_before_the_first_question(
    gnothi: Run, mine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Scripted(script, name="text-only", capabilities=Capabilities(logprobs=True))
    monkeypatch.setattr(sources, "open_model", stand_in(model))
    edited(mine, "settings = { rerank = false }", 'settings = { signal = "gram" }')
    complained(gnothi("reproduce", mine, "--limit", "2", "--set", "signal=perplexity", "--out", str(tmp_path / "runs")))
    assert model.prompts == []


@pytest.mark.slow
def test_several_processes_give_the_same(gnothi_json: Json, tmp_path: Path) -> None:
    arguments = ("reproduce", "seakr", "lab:one_hop", "--limit", "2", "--only", "Perplexity", "--set", "signal.samples=2")
    one = gnothi_json(*arguments, "--out", str(tmp_path / "one"))
    two = gnothi_json(*arguments, "--out", str(tmp_path / "two"), "--workers", "2")
    for name in ("seakr", "perplexity"):
        both = [read_rows(tmp_path / run / name) for run in ("one", "two")]
        assert all(a.agrees(b) for a, b in zip(*both, strict=True))
    assert [variant["em"] for variant in one["variants"]] == [variant["em"] for variant in two["variants"]]


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize(
    "arguments",
    [
        "MINE --data folder",
        "MINE --rehearse",
        "MINE --trained folder",
        "seakr/table1 lab --rehearse",
        "seakr/table1 --index lab --rehearse",
        "seakr/table1 --csv table.csv --rehearse",
        "seakr/table1",
    ],
)
def test_what_a_recipe_has_no_use_for_is_refused(gnothi: Run, mine: str, tmp_path: Path, arguments: str) -> None:
    given = [mine if one == "MINE" else one for one in arguments.split()]
    complained(gnothi("reproduce", *given, "--out", str(tmp_path / "runs")))
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "added",
    [
        "questions = 5",
        'data = "nq"',
        'data = ["nqq"]',
        'percent = "yes"',
        "questions = true",
        'calls = "all"',
        "train = [3]",
        "on.nq = { mdl = 3 }",
    ],
)
def test_keys_of_a_papers_table_are_checked_in_a_file_too(gnothi: Run, mine: str, added: str) -> None:
    data = '\ndata = ["nq"]' if not added.startswith(("data", "questions = 5")) else ""
    complained(gnothi("reproduce", edited(mine, "title", f"{added}{data}\ntitle")))


def test_a_gate_that_is_shut_is_judged_by_its_own_answers_as_eval_does(
    scripted: Scripted, gnothi_json: Json, mine: str, tmp_path: Path
) -> None:
    from gnothi import lab

    known = {one.text: one.answers[0] for one in lab.questions(lab.world(), "one_hop", 500)[:12:2]}

    def answers(prompt: Prompt) -> Reply:
        said = f"So the answer is {known.get(prompt.question, 'nobody')}."
        return Reply(said, doubt=5.0 if prompt.question not in known else 0.0)

    scripted._script = answers
    edited(mine, "settings = { rerank = false }", "settings = { threshold = inf }")
    run = tmp_path / "runs" / "re-ranking"
    found = gnothi_json("reproduce", mine, "--limit", "12", "--only", "− re-ranking", "--out", str(tmp_path / "runs"))
    (variant,) = [variant for variant in found["variants"] if variant["label"] == "− re-ranking"]
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    assert summary["methods"][0]["gate"]["truth"] == "seakr"
    assert variant["gate_auroc"] == summary["methods"][0]["gate_auroc"] == 1.0
    same = ("--limit", "12", "--set", "max_steps=3", "--set", "signal.samples=4", "--set", "threshold=inf", "--out", str(run))
    assert gnothi_json("eval", "lab:one_hop", "--method", "seakr", *same) == summary["methods"]


# --- interrupted -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_study_goes_on_and_ends_the_same(gnothi_json: Json, mine: str, tmp_path: Path, how: int) -> None:
    out = tmp_path / "runs"
    arguments = ["reproduce", mine, "--limit", "10", "--concurrency", "2", "--only", "− re-ranking", "--out", str(out)]
    process = Stopping("tests.cli.stopping_gnothi", *arguments)
    process.go_until(lambda: (out / "re-ranking").exists() and len(read_rows(out / "re-ranking")) >= 2)
    process.interrupt(how)
    _, said = process.ended()
    assert process.said == ""
    assert "Traceback" not in said
    kept = len(read_rows(out / "seakr")), len(read_rows(out / "re-ranking"))
    assert kept[0] == 10  # the first variant is finished
    assert 2 <= kept[1] < 10
    if how == signal.SIGINT:
        assert process.returncode == 130, said
        assert f"interrupted. {sum(kept)} of 20 answers are kept in {out}. Run the same command again to resume." in said
    first = (out / "seakr" / "rows.jsonl").read_bytes()
    resumed = gnothi_json(*arguments)
    assert set((out / "seakr" / "rows.jsonl").read_bytes().splitlines()) == set(first.splitlines())
    undisturbed = gnothi_json(*arguments[:-1], str(tmp_path / "undisturbed"))
    for variant in (*resumed["variants"], *undisturbed["variants"]):
        del variant["run"]
    assert resumed == undisturbed
