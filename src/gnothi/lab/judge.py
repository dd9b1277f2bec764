"""The laboratory's language model as a cross-encoder: what it was taught to judge, Yes or No, scores a pair of query and text.

It is what training a re-ranker starts from (``gnothi train reranker --base lab``). The pair stands in the model's own format,
as a template of its tokenizer, so that the library renders it: question, what is known, a passage, ``<useful>``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gnothi.errors import MissingDependency
from gnothi.models import LAB_FOLDER

_OF = "{{% for one in messages if one.role == '{}' %}}{{{{ one.content }}}}{{% endfor %}}"
TEMPLATE = f"<bos><question> {_OF.format('query')} <passage> {_OF.format('document')} <useful>"
LIMIT = 512
"""Tokens of a pair: twice what the model was trained on."""


def judge(folder: Path = LAB_FOLDER) -> Any:
    """A CrossEncoder of the laboratory model in ``folder``; its score is the logit of "Yes" less that of "No".

    Raises MissingDependency without sentence-transformers.
    """
    try:
        from sentence_transformers import CrossEncoder
        from sentence_transformers.base.modules import Transformer
        from sentence_transformers.cross_encoder.modules.logit_score import LogitScore
    except ImportError as error:
        raise MissingDependency("sentence-transformers", "dense", "the laboratory's judge") from error
    from gnothi.models.engine.loading import no_progress_bars

    library: Any = Transformer
    with no_progress_bars():
        module = library(
            str(folder),
            transformer_task="text-generation",
            processor_kwargs={"chat_template": TEMPLATE, "model_max_length": LIMIT},
        )
    yes, no = (module.tokenizer(reply, add_special_tokens=False)["input_ids"][0] for reply in ("Yes", "No"))
    return CrossEncoder(modules=[module, LogitScore(yes, no)])
