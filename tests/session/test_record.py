"""A run asked again from its own ``config.toml``, and runs that go on after their index has changed."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from gnothi import methods
from gnothi.config import load_toml, read_settings
from gnothi.graph.building import build_graph
from gnothi.protocols import KnowledgeGraph, LanguageModel, Retriever
from gnothi.retrieval.build import build
from gnothi.retrieval.registry import index_fingerprint as fingerprint
from gnothi.runs.folder import read_config
from gnothi.session.fingerprints import fingerprints
from gnothi.session.record import as_arguments, as_settings
from gnothi.signals.probe import Probe
from gnothi.signals.probe_folder import HEADER, LAB_FOLDER
from gnothi.testing.model import Scripted
from tests.command_line import KNOWN, Json, Run

SETTINGS = ("--set", "signal.samples=4", "--set", "seakr.threshold=-1.5", "--set", "rag.k=2", "--set", "index.depth=7")


def rows(run: Path) -> list[dict[str, Any]]:
    """Without times."""
    found = [json.loads(line) for line in (run / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    for row in found:
        del row["cost"]["seconds"]
    return found


def same(run: Path) -> dict[str, Any]:
    return {key: value for key, value in read_config(run).items() if not key.startswith("execution.")}


@pytest.mark.usefixtures("scripted")
def test_the_same_settings_lead_to_the_same_rows(gnothi: Run, tmp_path: Path) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    asked = ("--method", "direct,rag,seakr", "--limit", "4", "--seed", "3", *SETTINGS)
    assert gnothi("eval", "lab:one_hop", *asked, "--out", str(first))[0] == 0
    assert gnothi("eval", "--config", str(first / "config.toml"), "--out", str(again))[0] == 0
    assert rows(again) == rows(first)
    assert same(again) == same(first)
    assert same(again)["seed"] == 3


@pytest.mark.usefixtures("scripted")
def test_what_is_given_wins_over_the_run(gnothi: Run, tmp_path: Path) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    assert gnothi("eval", "lab:one_hop", "--method", "direct,rag", "--limit", "2", "--out", str(first))[0] == 0
    given = ("--limit", "3", "--method", "rag", "--set", "k=1", "--seed", "5")
    assert gnothi("eval", "lab", "--config", str(first / "config.toml"), *given, "--out", str(again))[0] == 0
    found = same(again)
    assert (found["dataset.name"], found["dataset.limit"], found["methods"], found["seed"]) == ("lab", 3, ["rag"], 5)
    assert found["method.rag.k"] == 1


@pytest.mark.usefixtures("scripted")
def test_a_run_configures_ask_too(gnothi_json: Json, gnothi: Run, tmp_path: Path) -> None:
    assert gnothi("eval", "lab", "--method", "rag", "--set", "k=2", "--limit", "2", "--out", str(tmp_path / "run"))[0] == 0
    found = gnothi_json("ask", KNOWN, "--config", str(tmp_path / "run" / "config.toml"))
    assert found["method"] == "rag"
    assert [len(search["passages"]) for search in found["searches"]] == [2]


def test_keys_of_a_run_and_of_a_file_of_settings() -> None:
    run = {
        "dataset.fingerprint": "f",
        "methods": ["seakr"],
        "model.settings.dtype": "float32",
        "execution.model.settings.device": "cpu",
        "searches.depth": 7,
        "method.seakr.threshold": -1.0,
        "model.name": "lab",
        "index": "none",
    }
    assert as_settings(run) == {
        "model.dtype": "float32", "model.device": "cpu", "index.depth": 7, "seakr.threshold": -1.0,
    }  # fmt: skip
    assert as_arguments(run) == {"model": "lab", "methods": ["seakr"], "method": "seakr"}
    plain = {"k": 3, "methods.k": 1}
    assert as_settings(plain) is None
    assert as_arguments(plain) == {}


def test_every_key_of_a_run_is_a_setting_or_a_flag(gnothi: Run, tmp_path: Path, scripted: object) -> None:  # noqa: ARG001
    assert gnothi("eval", "lab", "--method", "direct", "--limit", "2", "--out", str(tmp_path / "run"))[0] == 0
    config = tmp_path / "run" / "config.toml"
    assert set(read_settings(config, repeated=as_settings).given) == {
        key.removeprefix("method.") for key in load_toml(config) if key.startswith("method.")
    }


@pytest.mark.usefixtures("scripted")
def test_other_questions_under_the_same_name_are_told(gnothi: Run, tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"question": "Who wrote the known book?", "answers": ["Ada Bram"]}\n')
    assert gnothi("eval", str(questions), "--method", "direct", "--out", str(tmp_path / "run"))[0] == 0
    config = ("--config", str(tmp_path / "run" / "config.toml"))
    assert "has changed" not in gnothi("eval", *config, "--out", str(tmp_path / "again"))[2]
    questions.write_text('{"question": "Who read the known book?", "answers": ["Ada Bram"]}\n')
    _, _, err = gnothi("eval", *config, "--out", str(tmp_path / "other"))
    assert f"warning: the data set {questions} is not what it was for" in err


def ask(file: Path, *ids: str) -> None:
    """Questions of these names; of "b!" with another text, of "b?" with another answer."""
    lines = [
        {"id": name[0], "question": f"Who wrote {name.replace('?', '')}?", "answers": ["Ada" if "?" in name else "Bea"]}
        for name in ids
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("limit", [(), ("--limit", "3")])
def test_a_run_goes_on_with_more_questions(gnothi: Run, tmp_path: Path, scripted: Scripted, limit: tuple[str, ...]) -> None:
    questions, run = tmp_path / "questions.jsonl", tmp_path / "run"
    command = ("eval", str(questions), "--method", "direct", "--no-cache", "--out", str(run))
    ask(questions, "a", "b")
    assert gnothi(*command)[0] == 0
    before = rows(run)
    asked = len(scripted.prompts)
    ask(questions, "a", "b", "c", *(["d"] if limit else []))
    assert gnothi(*command, *limit)[0] == 0
    assert rows(run)[:2] == before
    assert [row["question_id"] for row in rows(run)] == ["a", "b", "c"]
    assert len(scripted.prompts) == asked + asked // 2
    assert (same(run)["dataset.questions"], same(run).get("dataset.limit")) == (3, 3 if limit else "none")
    assert gnothi(*command, *limit)[0] == 0  # and as it stands now
    ask(questions, "a", "b")
    assert gnothi(*command)[0] == 2


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["a", "b!", "c", "d"], r"text of question 'b' changed from 'Who wrote b\?' to 'Who wrote b!\?'"),
        (["a", "b?", "c", "d"], r"answers of question 'b' changed from \('Bea',\) to \('Ada',\)"),
        (["a", "c", "d"], "question 'b' is not among them"),
        (["b", "a", "c", "d"], "another order"),
        (["z", "a", "b", "c"], "put between"),
    ],
)
def test_questions_that_are_not_only_more_are_refused(gnothi: Run, tmp_path: Path, ids: list[str], said: str) -> None:
    questions, run = tmp_path / "questions.jsonl", tmp_path / "run"
    command = ("eval", str(questions), "--method", "direct", "--out", str(run))
    ask(questions, "a", "b", "c")
    assert gnothi(*command)[0] == 0
    before = rows(run), read_config(run)
    ask(questions, *ids)
    code, _, err = gnothi(*command)
    assert code == 2
    assert re.search(said, err)
    assert (rows(run), read_config(run)) == before
    ask(questions, "a", "b", "c")
    assert gnothi(*command)[0] == 0


@pytest.mark.usefixtures("scripted")
def test_a_run_goes_on_with_a_model_that_moved(gnothi: Run, tmp_path: Path) -> None:
    for name, content in (("one", "{}"), ("other", "[]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(content)

    def go_on(model: str) -> tuple[int, str, str]:
        asked = ("--model", str(tmp_path / model), "--index", "lab", "--method", "direct", "--limit", "2")
        return gnothi("eval", "lab:one_hop", *asked, "--out", str(tmp_path / "run"))

    assert go_on("one")[0] == 0
    before = rows(tmp_path / "run")
    (tmp_path / "one").rename(tmp_path / "moved")
    assert go_on("moved")[0] == 0
    assert rows(tmp_path / "run") == before
    assert same(tmp_path / "run")["model.name"] == str(tmp_path / "moved")
    code, _, err = go_on("other")
    assert code == 2
    assert "model.name" in err


# --- an index that has changed -----------------------------------------------------------------------------------------


def write(file: Path, *texts: str) -> Path:
    file.write_text("".join(json.dumps({"id": str(n), "text": text}) + "\n" for n, text in enumerate(texts)))
    return file


@pytest.mark.usefixtures("scripted")
def test_a_rebuilt_index_is_noticed(gnothi: Run, tmp_path: Path) -> None:
    source, index, run = tmp_path / "passages.jsonl", tmp_path / "index", str(tmp_path / "run")
    build([write(source, "Ada Bram wrote the known book.")], index)
    command = ("eval", "lab", "--method", "rag", "--limit", "2", "--index", str(index), "--out", run)
    assert gnothi(*command)[0] == 0
    build([source], index)  # nothing new
    assert gnothi(*command)[0] == 0
    build([write(source, "Bea Cole wrote the known book.")], index)
    code, _, err = gnothi(*command)
    assert code == 2
    assert f"the index {index} has changed since the run {run} was made" in err
    assert "Choose another --out" in err


@pytest.mark.usefixtures("scripted")
def test_a_probe_made_again_is_noticed(gnothi: Run, tmp_path: Path) -> None:
    probe, run = tmp_path / "probe", str(tmp_path / "run")
    shutil.copytree(LAB_FOLDER, probe)
    gate = ("--method", "compose", "--set", "gate=question", "--set", f"signal.probe={probe}")
    command = ("eval", "lab", *gate, "--limit", "2", "--out", run)
    assert gnothi(*command)[0] == 0
    (probe / "probe.json").touch()  # times do not count
    assert gnothi(*command)[0] == 0
    header = json.loads((probe / "probe.json").read_text())
    header["held_out"]["question"]["threshold"] = 0.9
    (probe / "probe.json").write_text(json.dumps(header))
    code, _, err = gnothi(*command)
    assert code == 2
    assert f"the probe {probe} has changed since the run {run} was made" in err
    _, _, err = gnothi("eval", "--config", f"{run}/config.toml", "--out", str(tmp_path / "again"))
    assert f"warning: the probe {probe} is not what it was for" in err


def test_fingerprints_by_what_is_named(tmp_path: Path) -> None:
    model, learnt = tmp_path / "model", tmp_path / "learnt"
    for folder in (model, learnt):
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        (folder / "notes.md").write_text("first")

    def found() -> dict[str, str]:
        named = {"model.name": (LanguageModel, str(model)), "method.seakr.signal.probe": (Probe, str(learnt))}
        return fingerprints(named | {"index": (Retriever, None), "graph": (KnowledgeGraph, str(tmp_path / "none"))})

    first = found()
    assert first.keys() == {"fingerprints.model.name", "fingerprints.method.seakr.signal.probe"}
    for folder in (model, learnt):
        (folder / "notes.md").write_text("second")
    assert found() == first
    for folder in (model, learnt):
        (folder / "config.json").write_text("[]")
        (folder / HEADER).write_text("[]")
    assert all(first[key] != value for key, value in found().items())
    assert fingerprints({"model.name": (LanguageModel, "openai:some"), "index": (Retriever, "lab")}) == {}


@pytest.mark.parametrize("name", methods.names())
def test_whatever_a_method_can_name_has_a_fingerprint(name: str, tmp_path: Path) -> None:
    assert fingerprints({key: (wanted, str(tmp_path)) for key, wanted in methods.spec(name).optional.items()}).keys() <= {
        f"fingerprints.{key}" for key in methods.spec(name).settings
    }


def test_fingerprints_follow_content(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one.jsonl", "a", "b"), write(tmp_path / "two.jsonl", "a", "c")
    build([one], tmp_path / "first")
    build([one], tmp_path / "second")
    build([two], tmp_path / "third")
    found = [fingerprint(tmp_path / name) for name in ("first", "second", "third")]
    assert found[0] == found[1] != found[2]
    assert all(found)


def test_fingerprints_of_graphs(tmp_path: Path) -> None:
    for name, tail in (("a", "x"), ("b", "x"), ("c", "y")):
        (tmp_path / f"{name}.tsv").write_text(f"head\trelation\ttail\nn\tr\t{tail}\n")
        build_graph([tmp_path / f"{name}.tsv"], tmp_path / name)
    found = [fingerprint(tmp_path / name) for name in "abc"]
    assert found[0] == found[1] != found[2]
    assert all(found)


@pytest.mark.usefixtures("scripted")
def test_demonstrations_that_changed_are_noticed(gnothi: Run, tmp_path: Path) -> None:
    own, run = tmp_path / "own.toml", str(tmp_path / "run")
    own.write_text('[answer]\ninstruction = "Answer."\n')
    command = ("eval", "lab", "--method", "direct", "--limit", "2", "--set", f"model.demonstrations={own}", "--out", run)
    assert gnothi(*command)[0] == 0
    assert gnothi(*command)[0] == 0
    own.write_text('[answer]\ninstruction = "Answer at once."\n')
    code, _, err = gnothi(*command)
    assert code == 2
    assert f"the demonstrations {own} has changed since the run {run} was made" in err
