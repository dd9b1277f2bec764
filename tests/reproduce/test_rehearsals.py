"""Every recipe from end to end with the laboratory's model, on two questions of each data set; what is learnt is shared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gnothi.reproduce import recipe
from gnothi.reproduce.needs import opens
from gnothi.reproduce.parts import Job, parts
from gnothi.reproduce.variants import plan_study
from gnothi.reproduce.work import carry_out
from gnothi.retrieval.dense.encoders import Encoder
from gnothi.training import curve
from gnothi.training.self_knowledge import stages as self_knowledge
from gnothi.types import Question
from tests.reproduce.doors import recorder

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trained")


@pytest.mark.parametrize("name", [name for name in recipe.names() if "/" in name])
def test_rehearsal(name: str, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = recipe.read(name)
    for extra in found.extras:
        pytest.importorskip({"training": "peft", "dense": "sentence_transformers"}[extra], reason=f"needs gnothi[{extra}]")
    job = Job(recipe=found, out=tmp_path, rehearse=True, limit=2, trained=trained)
    told: set[tuple[type, str]] = set()
    for part in parts(job):
        to_learn = tuple(one for one in part.trainings if not part.learnt(one).exists())
        told |= {*opens(replace(part, trainings=to_learn), plan_study(part.study, part.request))}
    for place in (curve, self_knowledge):  # what the tests of each training look at takes a second each time
        monkeypatch.setattr(place, "save_figure", lambda *_: None)
    doors = recorder(monkeypatch)
    outcome = carry_out(job)
    met = {one for one in doors if one[0] not in (Question, Encoder)}
    assert met == {one for one in told if one[0] is not Encoder}
    assert outcome.failures == 0
    assert [one.name for one in outcome.data] == [source.name for source in found.data]
    for one in outcome.data:
        rows = [row.label for row in found.study.variants if one.name not in found.rows[row.label].without]
        assert [row.label for row in one.rows] == rows
        assert all(cell.ours is not None for row in one.rows for cell in row.cells)
