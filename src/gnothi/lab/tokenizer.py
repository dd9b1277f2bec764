"""The lab model's tokenizer: one token per word, and one per name of the world, even where a name has several words.

A unigram tokenizer with equal piece scores picks the segmentation with the fewest pieces, so that "Ada Brolm" is one
token wherever it stands and decoding gives the text back with its spaces. One token a name spares a small model the work
of binding the parts of a name to each other (``docs/results/laboratory.md`` has the measurements behind this).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gnothi.lab import language
from gnothi.lab.world import World

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

TASKS = ("reason", "answer", "know", "decompose", "equivalent", "useful", "describe")
SPECIAL = ("<pad>", "<unk>", "<bos>", "<eos>", "<passage>", "<question>", "<choices>", *(f"<{task}>" for task in TASKS))
_WORD = re.compile(r"#\d+|[A-Za-z0-9']+|[^\sA-Za-z0-9']")
_PUNCTUATION = (".", ",", "?", ":", "/")


def vocabulary(world: World) -> list[str]:
    """Pieces in a stable order: words with their leading space mark, punctuation without, names last."""
    texts: list[str] = []
    for relation in language.RELATIONS:
        texts += [*relation.statements, *relation.questions, relation.phrase]
        texts += [language.question_with(relation, "the", variant) for variant in range(len(relation.questions))]
    texts += [*language.YES_NO_SAME.values(), *language.YES_NO_FACT.values()]
    texts += [template for variants in language.COMPARISON.values() for template in variants]
    texts += [language.CONCLUSION, language.KNOWN, language.UNKNOWN, language.UNANSWERABLE, "yes no Yes No the of in from city"]
    texts += ["The Spouse the spouse : / 1. 2. 3. #1 #2 #3 nothing is known about"]
    words = {word for text in texts for word in _WORD.findall(re.sub(r"\{\w\}", " ", text)) if word not in _PUNCTUATION}
    names = [name for kind in world.values for name in world.values[kind]]
    pieces = (
        [f"▁{word}" for word in sorted(words)] + ["▁:", "▁/", *_PUNCTUATION] + [f"▁{name.replace(' ', '▁')}" for name in names]
    )
    return list(dict.fromkeys(pieces))


def build_tokenizer(world: World) -> PreTrainedTokenizerFast:
    """A ``transformers`` fast tokenizer over the world's words and names. Unknown words become ``<unk>``."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
    from tokenizers.models import Unigram
    from transformers import PreTrainedTokenizerFast

    pieces = [*SPECIAL, *vocabulary(world)]
    tokenizer = Tokenizer(Unigram([(piece, -1.0) for piece in pieces], unk_id=SPECIAL.index("<unk>"), byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip(left=False, right=True)]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(
        [AddedToken(token, lstrip=True, rstrip=False, normalized=False, special=True) for token in SPECIAL]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A $B", special_tokens=[("<bos>", SPECIAL.index("<bos>"))]
    )
    build: Any = PreTrainedTokenizerFast
    built: PreTrainedTokenizerFast = build(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<bos>",
        eos_token="<eos>",
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    return built


def name_ids(world: World, tokenizer: PreTrainedTokenizerFast, *kinds: str) -> list[int]:
    """Token ids of the world's values of these types (by default all: names, years, professions, industries), in order."""
    pieces = [f"▁{name.replace(' ', '▁')}" for kind in kinds or world.values for name in world.values[kind]]
    ids: Any = tokenizer.convert_tokens_to_ids(pieces)
    return list(dict.fromkeys(ids))
