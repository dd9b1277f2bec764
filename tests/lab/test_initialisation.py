import pytest

from gnothi import lab
from gnothi.lab.language import BY_NAME
from gnothi.lab.tokenizer import build_tokenizer
from gnothi.lab.training import Recipe, build_model

torch = pytest.importorskip("torch", reason="needs the extra 'local'")


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
