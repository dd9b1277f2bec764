"""What a recipe needs from outside: derived from the plans of all its rows and from its trainings, told before anything starts.

Each part of a plan says itself what it opens (``Plan.opens``, ``Trainable.opens``); ``resources.toml`` says where to get it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from gnothi.errors import ResourceUnavailable
from gnothi.filtering.encoders import LEXICAL, bare
from gnothi.filtering.likeness import Likeness
from gnothi.models import check_model
from gnothi.protocols import LanguageModel, Reranker
from gnothi.reproduce import learning, resources
from gnothi.reproduce.parts import LAB, Job, Part, place
from gnothi.reproduce.resources import Resource
from gnothi.reproduce.variants import PlannedStudy
from gnothi.retrieval.dense.encoders import Encoder
from gnothi.session.fingerprints import Named
from gnothi.signals.entailment import Entailment
from gnothi.weights import version_of

_KEY = "OPENAI_API_KEY"
_SHIPPED = {LAB, LEXICAL}
"""Names of what comes with the package."""
_DENSE = {"sentence_transformers": "dense"}
"""What reads with encoders and cross-encoders, and the extra that brings it."""
_CALLED = {
    LanguageModel: "model",
    Reranker: "re-ranker",
    Encoder: "encoder",
    Entailment: "NLI model",
    Likeness: "model of BERTScore",
}


@dataclass(frozen=True, slots=True)
class Need:
    """Something from outside. ``lacking`` is what is not there; ``warning`` says that a file is not what was expected.
    ``gigabytes`` are downloaded, ``disk`` more are written by what is built of them; 0 where that is not known. ``gated``: the
    licence has to be accepted on its page first. ``here``: nothing has to be downloaded. ``unverified``: size, licence or price
    are from memory."""

    title: str
    home: str
    get: str
    licence: str
    lacking: tuple[str, ...] = ()
    warning: str = ""
    gigabytes: float = 0.0
    disk: float = 0.0
    gated: bool = False
    here: bool = True
    unverified: bool = False


def needs(job: Job, planned: Mapping[str, PlannedStudy], parts: list[Part]) -> list[Need]:
    """``planned`` by part. Of a rehearsal, and of a recipe without data sets, only what the package lacks."""
    named = {one: None for part in parts for one in _outside(part, planned[part.name])}
    lacking_needs = [] if job.rehearse or not job.recipe.data else [*_files(job, planned, parts), *_downloads(named)]
    packages = {name: extra for part in parts for one in part.trainings for name, extra in learning.packages(one).items()}
    packages |= _DENSE if any(protocol in (Reranker, Encoder, Entailment) for protocol, _ in named) else {}
    packages |= {"bert_score": "bertscore"} if any(protocol is Likeness for protocol, _ in named) else {}
    lacking = [name for name in packages if find_spec(name) is None]
    if lacking:
        extras = ",".join(sorted({packages[name] for name in lacking}))
        lacking_needs.append(Need("packages of Python", "", f"pip install 'gnothi[{extras}]'", "", tuple(lacking)))
    return lacking_needs


def opens(part: Part, planned: PlannedStudy) -> Iterator[Named]:
    """The protocol and the name, or the object, of everything that the part opens: its trainings, then its rows."""
    for training in part.trainings:
        yield from learning.opens(part, training)
    if part.job.recipe.pairs is not None:
        yield from learning.labelling(part).opens
    for plan in planned.plans.values():
        yield from plan.opens


def _outside(part: Part, planned: PlannedStudy) -> Iterator[Named]:
    """Not what comes with the package, nor what is learnt on the way; with the encoders of what is built."""
    own = {*_SHIPPED, *(str(part.learnt(one)) for one in part.trainings)}
    for protocol, name in opens(part, planned):
        if isinstance(name, str) and name not in own:
            yield protocol, bare(name)
            if name in part.built:
                source = part.built[name]
                yield from ((Encoder, one) for one in (source.encoder, source.question_encoder) if one)


def _files(job: Job, planned: Mapping[str, PlannedStudy], parts: list[Part]) -> Iterator[Need]:
    """Questions to ask and to learn from, then what indexes and graphs are built of."""
    read: dict[str, dict[str, None]] = {}
    for part in parts:
        files_of = [(part.source.name, part.source.questions)]
        for training in part.trainings:
            files_of += [(source.name, source.training or source.questions) for source in part.teaching(training)]
        if learning.to_calibrate(part, planned[part.name]):
            source = resources.find("data", job.recipe.calibration)
            files_of.append((source.name, source.training or source.questions))
        for name, file in files_of:
            read.setdefault(name, {})[file] = None
    for name, files in read.items():
        one = resources.find("data", name)
        yield _need(one, (*files, *one.beside), job)
    built = {name: part.built[name] for part in parts for _, name in _outside(part, planned[part.name]) if name in part.built}
    for _, one in sorted(built.items()):
        yield _need(one, () if (_folder(job) / one.index).is_dir() else one.files, job)


def _need(source: Resource, files: Iterable[str], job: Job) -> Need:
    paths = [*dict.fromkeys(Path(place(file, job).rpartition(":")[2]) for file in files)]
    lacking = tuple(str(path) for path in paths if not path.is_file())
    wrong = [path for path in paths if (known := _sha256(source, path, job)) and path.is_file() and _digest(path) != known]
    warning = f"{wrong[0]} is not the file that was looked at here: another version?" if wrong else ""
    return _need_of(source, lacking, warning, here=not lacking)


def _need_of(source: Resource, lacking: tuple[str, ...], warning: str = "", here: bool = False) -> Need:
    about = (source.title, source.home, source.get, source.licence)
    return Need(*about, lacking, warning, source.gigabytes, source.disk, source.gated, here, source.unverified)


def _downloads(named: Iterable[Named]) -> Iterator[Need]:
    """Models, encoders and re-rankers."""
    for protocol, name in dict.fromkeys((_CALLED[protocol], name) for protocol, name in named if protocol in _CALLED):
        known = resources.model(name)
        here = Path(name).exists() or bool(version_of(name))
        lacking = tuple(_unavailable(name, bool(known and known.gated) and not here))
        yield _need_of(known, lacking, here=here) if known else Need(f"the {protocol} {name}", "", "", "", lacking, here=here)


def _unavailable(spec: str, gated: bool) -> Iterator[str]:
    if spec.startswith("openai:") and not os.environ.get(_KEY):
        yield f"the environment variable {_KEY}"
    if gated and not _signed_in():
        yield f"access to {spec}: it is gated, and nobody is signed in to huggingface.co here (`hf auth login`)"
    try:
        check_model(spec, on_the_hub=False)
    except ResourceUnavailable as error:
        yield error.message


def _signed_in() -> bool:
    try:
        from huggingface_hub import get_token
    except ImportError:
        return False
    return get_token() is not None


def _folder(job: Job) -> Path:
    return job.data or Path()


def _sha256(source: Resource, path: Path, job: Job) -> str | None:
    return next((digest for file, digest in source.sha256.items() if _folder(job) / file == path), None)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
