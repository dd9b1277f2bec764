from __future__ import annotations

import json
from pathlib import Path

import pytest

from gnothi.datasets import data_sets, load
from gnothi.errors import InvalidInput


def line(name: str) -> str:
    choices = [{"label": "A", "text": "bank"}, {"label": "B", "text": "mall"}]
    question = {"stem": f"Where is {name}?", "question_concept": name, "choices": choices}
    return json.dumps({"id": name, "answerKey": "B", "question": question})


def test_the_list_divides_the_training_file(tmp_path: Path) -> None:
    path = tmp_path / "train_rand_split.jsonl"
    path.write_text("\n".join(map(line, "abcd")), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"there is no .*inhouse_split_qids\.txt: expected the ids"):
        load(f"csqa-inhouse:test:{path}")
    (tmp_path / "inhouse_split_qids.txt").write_text("c\na\n", encoding="utf-8")
    assert [one.id for one in load(f"csqa-inhouse:train:{path}")] == ["a", "c"]
    assert [one.id for one in load(f"csqa-inhouse:test:{path}")] == ["b", "d"]
    assert [one.id for one in load(f"csqa-inhouse:test:{path}", limit=1)] == ["b"]


@pytest.mark.parametrize("argument", ["csqa-inhouse", "csqa-inhouse:dev:x", "csqa-inhouse:test"])
def test_a_part_and_a_file_are_named(argument: str) -> None:
    with pytest.raises(InvalidInput, match=r"expected csqa-inhouse:train:FILE or csqa-inhouse:test:FILE"):
        load(argument)
    assert "csqa-inhouse" in data_sets()
