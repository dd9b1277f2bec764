"""Early stopping, and checkpoints that were being written when the process ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gnothi.errors import InvalidSetting, MissingDependency
from gnothi.models import LAB_FOLDER, ModelSettings, VLLMSettings
from gnothi.models.engine.loading import Declaration, declared, load
from gnothi.models.rendering import Plain
from gnothi.prompts.sets import shipped
from gnothi.training.adapter import Tuning, adapted, merged
from gnothi.training.finetuning import (
    Origin,
    Showing,
    newest_checkpoint,
    out_of_patience,
    quiet,
    read_header,
    renderer_of,
    require_libraries,
    write_header,
    write_model,
)
from gnothi.types import Passage, Prompt
from tests.messages import refused


def test_patience() -> None:
    assert not out_of_patience([0.1, 0.3, 0.2, 0.3], 3)
    assert out_of_patience([0.1, 0.3, 0.2, 0.3], 2)
    assert out_of_patience([0.3, 0.3], 1)
    assert not out_of_patience([0.3], 1)


def test_a_torn_checkpoint_does_not_count(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path / "absent") is None
    for step, state in ((2, "{}"), (10, "{}"), (12, '{"torn'), (14, None)):
        (tmp_path / f"checkpoint-{step}").mkdir()
        if state is not None:
            (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text(state)
    assert newest_checkpoint(tmp_path) == tmp_path / "checkpoint-10"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-10", "checkpoint-2"]


def test_a_header_says_that_it_is_finished(tmp_path: Path) -> None:
    assert read_header(tmp_path) is None
    write_header(tmp_path, {"steps": 3})
    assert read_header(tmp_path) == {"steps": 3}


class Saved:
    """In place of a model and a tokenizer that save themselves."""

    def save_pretrained(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text("{}")


def test_a_model_is_trained_with_the_prompts_it_will_be_asked_with(tmp_path: Path) -> None:
    plain = ModelSettings(renderer="plain", demonstrations="skill-rag")
    asked = Prompt(shipped()["know"], "Who?")
    origin = Origin("base", "base", plain)
    own = renderer_of(origin, object(), Declaration())
    assert own.render(asked).startswith("Do you know the answer to this question?")
    assert (own.name, own.special_tokens) == ("plain", True)
    assert Showing(Plain(), {}).render(asked) == Plain().render(asked)
    write_model(tmp_path, Saved(), Saved(), "self-knowledge", origin, Declaration(), {})
    assert declared(tmp_path).demonstrations == "skill-rag"
    further = Origin("trained", str(tmp_path), VLLMSettings(renderer="plain"))
    assert renderer_of(further, object(), declared(tmp_path)).render(asked) == own.render(asked)


@pytest.mark.parametrize(("passages", "shown"), [("titled", True), ("text", False)])
def test_titles_are_shown_in_training_as_in_use(passages: Any, shown: bool) -> None:
    asked = Prompt(shipped()["answer"], "Who wrote it?", (Passage("p", "She wrote it.", "Emma"),))
    text = renderer_of(Origin("base", "base", ModelSettings(renderer="plain", passages=passages)), object(), Declaration())
    for title in ("Emma", "Odile Varr"):  # the latter of a demonstration
        assert (f"{title}: " in text.render(asked)) is shown


def test_a_users_set_of_tasks_goes_with_the_model(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('[know]\ninstruction = "Well?"\ndemonstrations = []\n')
    origin = Origin("base", "base", ModelSettings(renderer="plain", demonstrations=str(tmp_path / "own.toml")))
    write_model(tmp_path / "out", Saved(), Saved(), "reader", origin, Declaration(), {})
    (tmp_path / "own.toml").unlink()
    again = Origin("out", str(tmp_path / "out"), ModelSettings(renderer="plain"))
    made = renderer_of(again, object(), declared(tmp_path / "out"))
    assert made.render(Prompt(shipped()["know"], "Who?")) == "Well?\n\nQuestion: Who?\nAnswer:"


def test_what_is_not_installed_is_told_before_any_work() -> None:
    with refused(MissingDependency):
        require_libraries("this training", {"json": "report", "no_such": "training"})


ORIGIN = Origin("lab", str(LAB_FOLDER), ModelSettings(pack_weights=False))


def model() -> Any:
    pytest.importorskip("peft")
    return load(ORIGIN.source, "lab", ORIGIN.to_train)[0]


def test_layers_that_are_not_there() -> None:
    with quiet(), refused(InvalidSetting):
        adapted(model(), Tuning(targets=("query",)), 0)


def test_the_scale() -> None:
    assert (Tuning().scale, Tuning(rank=4).scale, Tuning(alpha=3.0).scale) == (32.0, 8.0, 3.0)


def test_what_was_quantised_is_merged_in_full(tmp_path: Path) -> None:
    """There is no device for four bits here: a model that says it has them is loaded anew, and ends in the same weights."""
    with quiet():
        trained = adapted(model(), Tuning(targets=("q_proj",)), 0)
        for name, weights in trained.named_parameters():
            if "lora_B" in name:
                weights.data.fill_(0.01)
        trained.save_pretrained(tmp_path)
        quantised = adapted(model(), Tuning(targets=("q_proj",)), 0)
        quantised.get_base_model().is_quantized = True
        anew = merged(quantised, ORIGIN, tmp_path)
        whole = merged(trained, ORIGIN, tmp_path)
    for (name, one), (_, other) in zip(anew.named_parameters(), whole.named_parameters(), strict=True):
        assert one.equal(other), name
    assert not anew.get_submodule("model.layers.0.self_attn.q_proj").weight.equal(
        model().get_submodule("model.layers.0.self_attn.q_proj").weight
    )
