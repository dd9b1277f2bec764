"""`gnothi lab`: the world at a glance, its questions as data, its training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gnothi import lab
from gnothi.cli.lab import SETTINGS_FILE
from gnothi.lab import training
from gnothi.session.data import load_questions
from tests.command_line import Run
from tests.messages import complained


def test_info_counts_what_there_is(gnothi: Run) -> None:
    code, out, err = gnothi("lab", "info")
    assert (code, err) == (0, "")
    assert all(len(line) <= 80 for line in out.splitlines())


def test_info_as_json_agrees_with_the_world(gnothi: Run) -> None:
    document = json.loads(gnothi("lab", "info", "--json")[1])
    assert document["world"]["facts"] == len(lab.world().facts)
    assert document["library"]["passages"] == len(lab.passages())
    grid = document["entities by what the model saw and what the library holds"]
    assert sum(sum(row.values()) for row in grid.values()) == len(lab.world().entities)


def test_questions_written_to_a_file_are_those_of_the_data_set(gnothi: Run, tmp_path: Path) -> None:
    out = tmp_path / "questions.jsonl"
    code, stdout, _ = gnothi("lab", "questions", "--kind", "two_hop", "--n", "500", "--out", str(out))
    assert (code, stdout) == (0, "")
    assert load_questions(str(out)) == load_questions("lab:two_hop")


def test_questions_show_their_truths(gnothi: Run) -> None:
    documents = json.loads(gnothi("lab", "questions", "--n", "5", "--seed", "3", "--json")[1])
    assert len(documents) == 5
    out = gnothi("lab", "questions", "--n", "5", "--seed", "3")[1]
    assert all(document["question"] in out and document["answers"][0] in out for document in documents)


@pytest.mark.parametrize(
    "arguments", ["questions --kind three_hop", "questions --n 0", "train --set stepps=1", "train --set grid.often=0.9"]
)
def test_bad_input_is_one_clear_line(gnothi: Run, arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    complained(gnothi("lab", *arguments.split()))
    assert not list(tmp_path.iterdir())


TINY = {"steps": 2, "hidden": 64, "layers": 2, "heads": 4, "intermediate": 16, "rows": 2, "width": 64}


@pytest.mark.slow
def test_training_writes_a_model_and_refuses_to_mix_settings(
    gnothi: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An untrained model never ends its replies, which makes calibration slow; tests/lab has tests of its own for it.
    monkeypatch.setattr(training, "calibrate", lambda *_: {})
    out = tmp_path / "model"
    arguments = ("lab", "train", "--out", str(out), *(f"--set={key}={value}" for key, value in TINY.items()))
    code, stdout, err = gnothi(*arguments)
    assert (code, stdout) == (0, "")
    assert "step 2" in err
    assert {"config.json", "model.safetensors", "tokenizer.json", "gnothi.json", SETTINGS_FILE} <= {
        f.name for f in out.iterdir()
    }
    complained(gnothi(*arguments, "--seed", "1"))
