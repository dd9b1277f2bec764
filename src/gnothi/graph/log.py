"""What was imported, in order: names and triples as they were read, in files that only grow.

A commit writes out what was added and then says, in one step, how long the files are. What stands behind that length is what a
kill left over, and is cut off when the log is opened again.
"""

from __future__ import annotations

import json
import os
from array import array
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gnothi.errors import IndexUnavailable
from gnothi.files import regular
from gnothi.graph.readers import Triple
from gnothi.retrieval.folder import write_whole

_STATE, _NAMES, _ROWS, _WEIGHTS = "log.json", "names.txt", "triples.i32", "weights.f32"
_COLUMNS = 4  # head, relation, tail, source
_AT_ONCE = 1 << 16


class Log:
    """Open only while holding the folder's lock. Raises IndexUnavailable when the files are shorter than the log says."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)
        state = self._state()
        self.rows = int(state["rows"])
        self._names_bytes = int(state["names_bytes"])
        self._relations: dict[str, int] = {name: number for number, name in enumerate(state["relations"])}
        self._sources: dict[str, int] = {origin: number for number, origin in enumerate(state["sources"])}
        self._files = [
            self._cut(_NAMES, self._names_bytes),
            self._cut(_ROWS, self.rows * _COLUMNS * 4),
            self._cut(_WEIGHTS, self.rows * 4),
        ]
        names = regular(folder / _NAMES).read_bytes().decode()
        self._nodes: dict[str, int] = {name: number for number, name in enumerate(names.split("\n")[:-1])}
        self._new_names: list[str] = []
        self._new_rows, self._new_weights = array("i"), array("f")

    @property
    def names(self) -> list[str]:
        """Of each node as it was read, by number."""
        return list(self._nodes)

    @property
    def relations(self) -> list[str]:
        """Names by number."""
        return list(self._relations)

    def source(self, origin: str) -> int:
        """The number of a version of a file."""
        return self._sources.setdefault(origin, len(self._sources))

    def add(self, triple: Triple, source: int) -> None:
        rows = self._new_rows
        relation = self._relations.setdefault(triple.relation, len(self._relations))
        rows.extend((self._node(triple.head), relation, self._node(triple.tail), source))
        self._new_weights.append(triple.weight)
        if len(self._new_weights) == _AT_ONCE:
            self._write()

    def _node(self, name: str) -> int:
        number = self._nodes.get(name)
        if number is None:
            number = self._nodes[name] = len(self._nodes)
            self._new_names.append(name)
        return number

    def commit(self) -> None:
        """Everything added so far survives a kill."""
        self._write()
        for log in self._files:
            log.flush()
            os.fsync(log.fileno())
        state = {
            "rows": self.rows,
            "names_bytes": self._names_bytes,
            "relations": list(self._relations),
            "sources": list(self._sources),
        }
        write_whole(self._folder / _STATE, json.dumps(state, ensure_ascii=False))

    def triples(self) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """All that was committed: (rows, 4) numbers of head, relation, tail and source; the weights. Raises IndexUnavailable
        for numbers that nothing has."""
        rows = np.fromfile(self._folder / _ROWS, dtype=np.int32, count=self.rows * _COLUMNS).reshape(-1, _COLUMNS)
        most = [len(self._nodes), len(self._relations), len(self._nodes), len(self._sources)]
        if len(rows) and (rows.min() < 0 or (rows.max(axis=0) >= most).any()):
            raise IndexUnavailable(
                f"{self._folder / _ROWS} is damaged: got nodes that are not there. Build the graph again into a new folder."
            )
        return rows, np.fromfile(self._folder / _WEIGHTS, dtype=np.float32, count=self.rows)

    def close(self) -> None:
        """What was not committed is dropped when the log is opened again."""
        for file in self._files:
            file.close()

    def _write(self) -> None:
        names = "".join(f"{name}\n" for name in self._new_names).encode()
        for file, data in zip(self._files, (names, self._new_rows.tobytes(), self._new_weights.tobytes()), strict=True):
            file.write(data)
        self._names_bytes += len(names)
        self.rows += len(self._new_weights)
        self._new_names, self._new_rows, self._new_weights = [], array("i"), array("f")

    def _cut(self, name: str, size: int) -> BinaryIO:
        path = self._folder / name
        file = regular(path).open("ab")
        if path.stat().st_size < size:
            file.close()
            raise IndexUnavailable(
                f"{path} is damaged: got {path.stat().st_size} bytes, expected {size}. Build the graph again into a new folder."
            )
        file.truncate(size)
        return file

    def _state(self) -> dict[str, Any]:
        try:
            state: dict[str, Any] = json.loads(regular(self._folder / _STATE).read_bytes())
            names = (state["relations"], state["sources"])
            whole = all(isinstance(state[key], int) and 0 <= state[key] < 1 << 40 for key in ("rows", "names_bytes"))
            if not whole or not all(isinstance(one, list) and all(isinstance(name, str) for name in one) for one in names):
                raise ValueError
        except FileNotFoundError:
            return {"rows": 0, "names_bytes": 0, "relations": [], "sources": []}
        except (ValueError, KeyError, TypeError, RecursionError):
            raise IndexUnavailable(
                f"{self._folder / _STATE} is damaged: it is not what a build writes. Build the graph again into a new folder."
            ) from None
        return state
