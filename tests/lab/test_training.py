import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gnothi import lab
from gnothi.errors import InvalidSetting
from gnothi.lab import probes, training
from gnothi.lab.curriculum import Curriculum, Mix
from gnothi.lab.language import BY_NAME
from gnothi.lab.tokenizer import build_tokenizer
from gnothi.lab.training import Recipe, build_model, thresholds, train
from gnothi.methods.steps.settings import Measuring, SignalSettings
from gnothi.testing.model import Scripted
from gnothi.types import Capabilities, Prompt
from tests.messages import refused

torch = pytest.importorskip("torch", reason="needs the extra 'local'")

TINY = Recipe(hidden=64, layers=2, heads=4, intermediate=64, steps=12, rows=2, width=192, warmup=2, first_stage=0.25)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Any]]:
    """The folder and the model of an undisturbed training, with few probes and samples."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probes, "Probes", partial(probes.Probes, n=8))
        patch.setattr(training, "SignalSettings", partial(SignalSettings, measuring=Measuring(samples=2)))
        yield folder, train(folder, TINY, probe_every=6, calibration_questions=1)


@pytest.mark.slow
def test_a_resumed_training_ends_as_an_undisturbed_one(whole: tuple[Path, Any], tmp_path: Path) -> None:
    for part in (3, 5):
        train(tmp_path, TINY, probe_every=6, stop_after=part)
    resumed = train(tmp_path, TINY, probe_every=6, calibration_questions=0)
    for name, weight in whole[1].state_dict().items():
        torch.testing.assert_close(resumed.state_dict()[name], weight, rtol=0, atol=0)
    curves = [
        [{**json.loads(line), "seconds": 0} for line in (folder / "curve.jsonl").read_text().splitlines()]
        for folder in (whole[0], tmp_path)
    ]
    assert [row["step"] for row in curves[0]] == [6, 12]
    assert curves[0] == curves[1]


@pytest.mark.slow
def test_the_result_is_an_ordinary_transformers_folder(whole: tuple[Path, Any]) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, trained = whole
    loaded = AutoModelForCausalLM.from_pretrained(folder)
    tokens = AutoTokenizer.from_pretrained(folder)("<question> Who are you? <reason>", return_tensors="pt")
    with torch.no_grad():
        torch.testing.assert_close(loaded(**tokens).logits, trained(**tokens).logits)
    declared = json.loads((folder / "gnothi.json").read_text())
    assert (declared["renderer"], declared["recipe"]["steps"]) == ("tagged", 12)
    assert declared["thresholds"] == {}  # it knows nothing yet: there is nothing to tell apart


@pytest.mark.parametrize("wrong", [{"hidden": 100, "heads": 3}, {"heads": 2}, {"layers": 1}, {"hidden": 32}, {"steps": 0}])
def test_a_shape_that_cannot_be_prepared_is_refused_with_advice(wrong: dict[str, int], tmp_path: Path) -> None:
    with refused(InvalidSetting):
        train(tmp_path, replace(TINY, **wrong))  # type: ignore[arg-type]


def test_packed_documents_are_blind_to_each_other() -> None:
    from gnothi.lab.tokenizer import encode, pack

    world = lab.world()
    tokenizer = build_tokenizer(world)
    model: Any = build_model(Recipe(hidden=64, layers=2, heads=4, intermediate=64), world, tokenizer)
    curriculum = Curriculum(world, Mix(), 0)
    encoded = encode(tokenizer, [curriculum.document() for _ in range(12)])
    batch = pack(iter(encoded), rows=4, width=256)
    with torch.no_grad():
        together = model(input_ids=batch.inputs, attention_mask=batch.mask()).logits
        for number in range(int(batch.documents.max()) + 1):
            where = batch.documents == number
            alone = model(input_ids=batch.inputs[where][None]).logits[0]
            torch.testing.assert_close(together[where], alone, rtol=1e-4, atol=1e-4)


def test_each_document_goes_into_the_first_row_with_room() -> None:
    from gnothi.lab.tokenizer import pack

    documents = [
        ([1] * 5, [1] * 5),
        ([2] * 99, [2] * 99),
        ([3] * 9, [3] * 9),
        ([4] * 6, [4] * 6),
        ([5] * 8, [5] * 8),
        ([6] * 3, [6] * 3),
    ]
    batch = pack(iter(documents), rows=2, width=12)
    assert batch.inputs.tolist() == [[1] * 5 + [4] * 6 + [0], [3] * 9 + [6] * 3]
    assert batch.documents.tolist() == [[0] * 5 + [2] * 6 + [-1], [1] * 9 + [3] * 3]
    assert batch.labels[0].tolist() == [1] * 5 + [4] * 6 + [-100]


def test_packing_stops_when_nothing_more_fits() -> None:
    from gnothi.lab.tokenizer import pack

    batch = pack((([1] * 7, [1] * 7) for _ in iter(int, 1)), rows=3, width=10, patience=4)
    assert batch.documents.max() == 2


def test_first_layer_heads_look_their_distance_back() -> None:
    model = build_model(Recipe(), lab.world(), build_tokenizer(lab.world()))
    model.set_attn_implementation("eager")
    tokens = torch.randint(14, 900, (1, 60), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        attention = model(input_ids=tokens, output_attentions=True).attentions[0][0]
    for head in range(4):
        for position in range(10, 60):
            assert int(attention[head, position].argmax()) == position - head - 1


def test_an_untrained_model_already_finds_the_object_of_the_same_subject() -> None:
    world = lab.world()
    tokenizer = build_tokenizer(world)
    model = build_model(Recipe(), world, tokenizer)
    model.set_attn_implementation("eager")
    statement = BY_NAME["birthplace"].statements[0]
    people, cities = world.values["person"][:3], world.values["city"][:3]
    told = " ".join(f"<passage> {name} : {statement.format(s=name, o=city)}" for name, city in zip(people, cities, strict=True))
    for name, city in zip(people, cities, strict=True):
        asked = f"{told} <question> Where was {name} born? <reason> The birthplace of {name} is"
        ids = tokenizer(asked)["input_ids"]
        with torch.no_grad():
            finder = model(input_ids=torch.tensor([ids]), output_attentions=True).attentions[1][0, 0, -1]
        found = {
            tokenizer.decode(ids[place]): float(finder[place])
            for place in range(len(ids))
            if tokenizer.decode(ids[place]) in cities
        }
        assert max(found, key=lambda place: found[place]) == city
        assert found[city] > 5 * max(weight for place, weight in found.items() if place != city)


def test_other_heads_compare_content_with_content() -> None:
    model = build_model(Recipe(), lab.world(), build_tokenizer(lab.world()))
    projection = model.model.layers[2].self_attn
    assert torch.equal(projection.q_proj.weight, projection.k_proj.weight)


def test_thresholds_part_what_the_model_knows_from_what_it_does_not() -> None:
    world = lab.world()
    asked = {question.text: question for question in lab.training_questions(world, "one_hop", 40)}

    def script(prompt: Prompt) -> list[str]:
        question = asked[prompt.question]
        if question.metadata["familiarity"] == "often":
            return [f"It is {question.answers[0]}"]
        return [f"It is {letter}" for letter in "abcdef"]

    model = Scripted(script, capabilities=Capabilities())
    chosen = asyncio.run(thresholds(model, world, 40))
    assert "gram" not in chosen  # the model shows no states
    assert 0 < chosen["consistency"] < 1


def test_nothing_is_chosen_where_all_is_wrong() -> None:
    model = Scripted(lambda _: "no idea", capabilities=Capabilities())
    assert [asyncio.run(thresholds(model, lab.world(), n)) for n in (10, 0)] == [{}, {}]
