"""vLLM's own ``/v1/embeddings`` and ``/v1/rerank`` with tiny random models: numbers of plain forwards, no request lost."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnothi.models.remote import embeddings
from gnothi.retrieval.dense.encoders import named_encoder
from gnothi.retrieval.registry import open_reranker
from tests.models.remote.real_server import running

for package in ("vllm", "openai"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed here: run `make test-vllm`", allow_module_level=True)

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.filterwarnings("default")]

MANY = 200
TEXTS = [f"text {n} of the keeper" for n in range(MANY)]


def saved(folder: Path, kind: str) -> tuple[Any, Any]:
    """A tiny BERT that reads letters, and its tokenizer."""
    import string

    import tokenizers
    import torch
    import transformers

    library: Any = transformers
    parts: Any = tokenizers

    letters = string.ascii_lowercase + string.digits
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{one}" for one in letters)]
    inner = parts.Tokenizer(parts.models.WordPiece({word: n for n, word in enumerate(words)}, unk_token="[UNK]"))
    inner.normalizer = parts.normalizers.BertNormalizer()
    inner.pre_tokenizer = parts.pre_tokenizers.BertPreTokenizer()
    inner.post_processor = parts.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    tokenizer = library.PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=256, **special)
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    config = library.BertConfig(vocab_size=len(words), max_position_embeddings=256, num_labels=1, **sizes)
    model = (library.BertModel if kind == "embed" else library.BertForSequenceClassification)(config).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GNOTHI_CACHE", str(tmp_path))


def served(folder: Path, log: Path) -> Any:
    flags: dict[str, Any] = {"model": folder, "served-model-name": "tiny", "runner": "pooling"}
    flags |= {"max-model-len": 256, "dtype": "float32", "gpu-memory-utilization": 0.1}
    words = [str(part) for key, value in flags.items() for part in (f"--{key}", value)]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1", "--enforce-eager", *words]
    return running(lambda port: [*command, "--port", str(port)], log)


def test_embeddings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    folder = tmp_path / "tiny"
    monkeypatch.setattr(embeddings, "ITEMS", 1)  # a request for each text
    model, tokenizer = saved(folder, "embed")
    with served(folder, tmp_path / "log") as url:
        encode = named_encoder(f"openai:tiny@{url}")
        assert encode is not None
        found = encode(TEXTS, "document", None, True)
    with torch.no_grad():
        plain = model(**tokenizer(TEXTS, return_tensors="pt", padding=True)).last_hidden_state[:, 0]
    assert np.allclose(found, torch.nn.functional.normalize(plain, dim=1).numpy(), atol=1e-5)


async def test_rankings(tmp_path: Path) -> None:
    import torch

    folder = tmp_path / "tiny"
    model, tokenizer = saved(folder, "rank")
    with served(folder, tmp_path / "log") as url:
        reranker = open_reranker(f"rerank:tiny@{url}")
        found = await asyncio.gather(*(reranker.score(f"query {n}", TEXTS[:4]) for n in range(MANY)))
        await reranker.aclose()
    assert len(found) == MANY
    for n in (0, 7, MANY - 1):
        with torch.no_grad():
            plain = model(**tokenizer([f"query {n}"] * 4, TEXTS[:4], return_tensors="pt", padding=True)).logits[:, 0]
        assert np.allclose(found[n], torch.sigmoid(plain).numpy(), atol=1e-5)
