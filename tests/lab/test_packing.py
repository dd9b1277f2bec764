import pytest

from gnothi import lab
from gnothi.lab.curriculum import Curriculum, Mix
from gnothi.lab.tokenizer import build_tokenizer
from gnothi.lab.training import Recipe, build_model

torch = pytest.importorskip("torch", reason="needs the extra 'local'")


def test_packed_documents_are_blind_to_each_other() -> None:
    from gnothi.lab.packing import encode, pack

    world = lab.world()
    tokenizer = build_tokenizer(world)
    model = build_model(Recipe(hidden=32, layers=2, heads=2, intermediate=64), tokenizer).eval()
    curriculum = Curriculum(world, Mix(), 0)
    encoded = encode(tokenizer, [curriculum.document() for _ in range(12)])
    batch = pack(iter(encoded), rows=4, width=256)
    with torch.no_grad():
        together = model(input_ids=batch.inputs, attention_mask=batch.mask()).logits
        for number in range(int(batch.documents.max()) + 1):
            where = batch.documents == number
            alone = model(input_ids=batch.inputs[where][None]).logits[0]
            torch.testing.assert_close(together[where], alone, rtol=1e-4, atol=1e-4)


def test_nothing_is_lost_but_what_cannot_fit() -> None:
    from gnothi.lab.packing import pack

    documents = [([1] * 5, [1] * 5), ([2] * 99, [2] * 99), ([3] * 6, [3] * 6), ([4] * 9, [4] * 9)]
    batch = pack(iter(documents), rows=2, width=12)
    assert batch.inputs.tolist() == [[1] * 5 + [3] * 6 + [0], [4] * 9 + [0] * 3]
    assert batch.documents.tolist() == [[0] * 5 + [1] * 6 + [-1], [2] * 9 + [-1] * 3]
    assert batch.labels[0].tolist() == [1] * 5 + [3] * 6 + [-100]
