"""CommonsenseQA's in-house split (Lin et al. 2019): the official training file, divided by a list of ids beside it.

The official test set has no public answers. Work with graphs therefore trains on the listed part and tests on the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gnothi.datasets import registry
from gnothi.datasets.named import DataSet
from gnothi.errors import InvalidInput
from gnothi.types import Question

LIST = "inhouse_split_qids.txt"
_PARTS = ("train", "test")


def questions(argument: str, limit: int | None) -> Iterator[Question]:  # noqa: ARG001
    """``train:FILE`` are the listed questions of the file, ``test:FILE`` the others. Raises InvalidInput."""
    part, _, name = argument.partition(":")
    if part not in _PARTS or not name:
        raise InvalidInput(
            f"csqa-inhouse: got {argument!r}, expected csqa-inhouse:train:FILE or csqa-inhouse:test:FILE, where FILE is "
            "CommonsenseQA's train_rand_split.jsonl."
        )
    path = Path(name).with_name(LIST)
    if not path.is_file():
        raise InvalidInput(
            f"there is no {path}: expected the ids of the in-house training questions, one a line, beside {name}."
        )
    listed = set(path.read_text(encoding="utf-8").split())
    return (one for one in registry.load(name) if (one.id in listed) == (part == "train"))


QUESTIONS = DataSet(
    open=questions,
    summary="CommonsenseQA's in-house split: csqa-inhouse:train:FILE and csqa-inhouse:test:FILE",
)
