"""What a recipe lacks on this machine, told before anything starts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from gnothi.errors import ResourceUnavailable
from gnothi.models import check_model
from gnothi.reproduce import resources
from gnothi.reproduce.parts import Job, Part, place
from gnothi.reproduce.recipe import On
from gnothi.reproduce.resources import Resource

_MODULES = {"training": ("peft", "trl"), "dense": ("sentence_transformers",)}
_KEY = "OPENAI_API_KEY"


@dataclass(frozen=True, slots=True)
class Need:
    """Something from outside. ``lacking`` are the files that are not there; ``warning`` that one is not what was expected."""

    title: str
    home: str
    get: str
    licence: str
    lacking: tuple[str, ...] = ()
    warning: str = ""


def needs(job: Job, parts: list[Part]) -> list[Need]:
    """Of a rehearsal only what the package lacks."""
    found = [] if job.rehearse or not job.recipe.data else [*_files(job, parts), *_models(parts)]
    lacking = [name for extra in job.recipe.extras for name in _MODULES.get(extra, ()) if find_spec(name) is None]
    if lacking:
        extras = ",".join(job.recipe.extras)
        found.append(Need("packages of Python", "", f"pip install 'gnothi[{extras}]'", "", tuple(lacking)))
    return found


def _files(job: Job, parts: list[Part]) -> Iterator[Need]:
    trains = bool(job.recipe.trainings)
    wanted = [part.source for part in parts]
    wanted += [resources.find("data", one.given["data"]) for one in job.recipe.trainings if "data" in one.given]
    for source in dict.fromkeys(one.name for one in wanted):
        one = resources.find("data", source)
        asked = source in {part.name for part in parts}
        files = (*((one.questions,) if asked else ()), *((one.training,) if trains and one.training else ()), *one.beside)
        yield _need(one, files, job)
    if job.recipe.calibrates:
        one = resources.find("data", job.recipe.calibration)
        yield _need(one, (one.training or one.questions,), job)
    named = {("corpus", job.recipe.on.get(part.name, On()).corpus or job.recipe.corpus) for part in parts}
    named |= {("graph", job.recipe.on.get(part.name, On()).graph or job.recipe.study.graph or "") for part in parts}
    for kind, name in sorted(one for one in named if one[1]):
        one = resources.find(kind, name)
        yield _need(one, () if (_folder(job) / one.index).is_dir() else one.files, job)


def _need(source: Resource, files: tuple[str, ...], job: Job) -> Need:
    paths = [Path(place(file, job).rpartition(":")[2]) for file in dict.fromkeys(files)]
    lacking = tuple(str(path) for path in paths if not path.is_file())
    wrong = [path for path in paths if (known := _sha256(source, path, job)) and path.is_file() and _digest(path) != known]
    warning = f"{wrong[0]} is not the file that was looked at here: another version?" if wrong else ""
    return Need(source.title, source.home, source.get, source.licence, lacking, warning)


def _models(parts: list[Part]) -> Iterator[Need]:
    for spec in models(parts):
        known = resources.model(spec)
        told = (known.title, known.home, known.get, known.licence) if known else (f"the model {spec}", "", "", "")
        yield Need(*told, lacking=tuple(_unavailable(spec)))


def models(parts: list[Part]) -> list[str]:
    """The main models and those of rows; judges and the like are settings."""
    every = [one for part in parts for one in (part.model, *(row.model for row in part.study.variants)) if one]
    return list(dict.fromkeys(every))


def _unavailable(spec: str) -> Iterator[str]:
    if spec.startswith("openai:") and not os.environ.get(_KEY):
        yield f"the environment variable {_KEY}"
    try:
        check_model(spec, on_the_hub=False)
    except ResourceUnavailable as error:
        yield error.message


def _folder(job: Job) -> Path:
    return job.data or Path()


def _sha256(source: Resource, path: Path, job: Job) -> str | None:
    return next((digest for file, digest in source.sha256.items() if _folder(job) / file == path), None)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
