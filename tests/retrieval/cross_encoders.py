"""Random cross-encoders, made on the spot: a classifier over pairs and a causal model scored by a logit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

WORDS = (
    "who built the lighthouse of orvel was in by dana brisk a heron stands shallow water is harbour town and where ? .".split()
)
_OF = "{{% for one in messages if one.role == '{}' %}}{{{{ one.content }}}}{{% endfor %}}"
TEMPLATE = f"<bos> <question> {_OF.format('query')} <passage> {_OF.format('document')} <know>"


def classifier(folder: Path, outputs: int = 1, architecture: str = "BertForSequenceClassification") -> str:
    """A BERT in ``folder``, with so many outputs for a pair, or without a classifier (``BertModel``)."""
    pytest.importorskip("sentence_transformers", reason="the extra `dense` is not installed (pip install 'gnothi[dense]')")
    import torch
    import transformers
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import BertProcessing

    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *map(str, range(10))]
    tokenizer: Any = Tokenizer(WordLevel({word: number for number, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    tokenizer.post_processor = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    library: Any = transformers
    wrapped = library.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=64,
    )
    config = library.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        num_labels=outputs,
        initializer_range=0.3,
    )
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = getattr(library, architecture)(config)
    model.save_pretrained(folder)
    wrapped.save_pretrained(folder)
    return str(folder)


def causal(folder: Path, architecture: str = "llama") -> str:
    """A causal language model that judges by its logits of Yes and No."""
    pytest.importorskip("sentence_transformers", reason="the extra `dense` is not installed (pip install 'gnothi[dense]')")
    from sentence_transformers import CrossEncoder
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.cross_encoder.modules.logit_score import LogitScore

    from tests.models.tiny import VOCABULARY, build_model, build_tokenizer

    tokenizer = build_tokenizer()
    tokenizer.chat_template = TEMPLATE
    parts = folder / "parts"
    build_model(architecture).save_pretrained(parts)
    tokenizer.save_pretrained(parts)
    library: Any = Transformer
    module = library(str(parts), transformer_task="text-generation")
    score = LogitScore(VOCABULARY.index("Yes"), VOCABULARY.index("No"))
    CrossEncoder(modules=[module, score], device="cpu").save_pretrained(str(folder / "whole"), create_model_card=False)
    return str(folder / "whole")
