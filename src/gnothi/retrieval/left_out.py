"""``gnothi-left-out.json``: which files below an index's sources it does not hold, or not whole, and why. A note for people,
kept until their source is built from again."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gnothi.errors import MALFORMED
from gnothi.files import regular
from gnothi.retrieval.folder import write_whole
from gnothi.retrieval.ingest.discover import whole

FILE = "gnothi-left-out.json"
_MOST = 1000


@dataclass(frozen=True, slots=True)
class LeftOut:
    """``reason`` says what is the matter with the file; ``unreadable`` where it should have been read, ``read`` where it was
    and this is to be known of it: pages that are pictures, a guessed encoding."""

    path: str
    reason: str
    unreadable: bool
    read: bool = False


def read(folder: Path) -> list[LeftOut]:
    """Those of the builds so far, in order of their names; none where there is no such file."""
    try:
        raw = json.loads(regular(folder / FILE).read_bytes())
        return [LeftOut(str(path), str(reason), bool(unreadable), bool(was_read)) for path, reason, unreadable, was_read in raw]
    except (OSError, *MALFORMED):
        return []


def write(folder: Path, sources: Sequence[str | os.PathLike[str]], left_out: Sequence[LeftOut]) -> None:
    """Those below ``sources``, and all of files that were read, are now these; others stay. A thousand are kept, unreadable
    ones first."""
    roots = [str(whole(source)) for source in sources]
    known = [one for one in read(folder) if not one.read]
    others = [one for one in known if not any(f"{one.path}{os.sep}".startswith(f"{root}{os.sep}") for root in roots)]
    if not left_out and not others and not (folder / FILE).exists():
        return
    chosen = sorted({*others, *left_out}, key=lambda one: (not one.unreadable, one.path))[:_MOST]
    rows = [(one.path, one.reason, one.unreadable, one.read) for one in sorted(chosen, key=lambda one: (one.path, one.reason))]
    write_whole(folder / FILE, json.dumps(rows, indent=0, ensure_ascii=False))
