import pytest

from gnothi import lab
from gnothi.lab.initialisation import _FIRST_LAYER
from gnothi.lab.tokenizer import build_tokenizer
from gnothi.lab.training import Recipe, build_model

torch = pytest.importorskip("torch", reason="needs the extra 'local'")


def test_positional_heads_look_their_distance_back() -> None:
    model = build_model(Recipe(), build_tokenizer(lab.world()))
    model.set_attn_implementation("eager")
    tokens = torch.randint(14, 900, (1, 40), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        first_layer = model(input_ids=tokens, output_attentions=True).attentions[0][0]
    for head in range(3):
        distance = int(_FIRST_LAYER[head][0])
        for position in range(10, 40):
            assert int(first_layer[head, position].argmax()) == position - distance


def test_matching_heads_attend_to_the_same_token() -> None:
    model = build_model(Recipe(layers=3), build_tokenizer(lab.world()))
    projection = model.model.layers[2].self_attn
    assert torch.equal(projection.q_proj.weight, projection.k_proj.weight)
