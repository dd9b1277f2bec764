"""A sentence-transformers model of 16 dimensions, made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def tiny_encoder(folder: Path) -> str:
    """Its folder; the test is skipped where the library is missing."""
    pytest.importorskip("sentence_transformers", reason="the extra `dense` is not installed (pip install 'gnothi[dense]')")
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace

    words = "question text who what when planned sails tram ferry dunmere heskar odile varr noon the of by was at ? . :".split()
    words += map(str, range(12))
    tokenizer: Any = Tokenizer(WordLevel({word: number for number, word in enumerate(["<unk>", *words])}, unk_token="<unk>"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    torch.manual_seed(0)
    module = StaticEmbedding(tokenizer, embedding_weights=torch.randn(len(words) + 1, 16).numpy())
    SentenceTransformer(modules=[module], device="cpu").save_pretrained(str(folder), create_model_card=False)
    return str(folder)
