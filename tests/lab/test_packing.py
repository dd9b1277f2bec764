from typing import Any

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
    from gnothi.lab.packing import pack

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
    from gnothi.lab.packing import pack

    batch = pack((([1] * 7, [1] * 7) for _ in iter(int, 1)), rows=3, width=10, patience=4)
    assert batch.documents.max() == 2
