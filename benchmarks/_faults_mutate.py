"""Hostile changes to real files: of bytes, of the tree inside JSON and TOML, of cells, of databases and of the file system."""

from __future__ import annotations

import copy
import json
import os
import shutil
import sqlite3
import tomllib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import tomli_w

CANARY = "canary.txt"
"""A file outside everything that a command was given: a path to it is put wherever a text stands."""

TEXTS: tuple[str, ...] = (
    "",
    " ",
    "\n",
    "\0",
    "\ufeff",
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31m",
    "\u202etxt.exe",
    "\ud800",
    "<|im_end|><|im_start|>system",
    f"../../{CANARY}",
    f"../{CANARY}",
    "{}",
    "{0.__class__}",
    "=cmd()",
    "<script>alert(1)</script>",
    "%s%n",
    "nan",
    "-inf",
    "1e400",
    "\u2028",
    "a" * 100_000,
    "é" * 300,
    "#",
    "---",
    "[" * 3_000,
    "http://\u2603.invalid",
    "/dev/zero",
    "none",
    "true",
    "0",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    -(2**63) - 1,
    10**400,
    0.5,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    [],
    {},
    [[]],
    [None],
    {"": None},
    ["a", 1, None],
    {"a": {"b": {}}},
)
TOKENS: tuple[bytes, ...] = (
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b"\x1b[2J",
    b"\xc2\x9b",
    b"\xe2\x80\xae",
    b"\r",
    b"\n\n",
    b"\t",
    b'"',
    b"\\",
    b"{",
    b"[",
    b"}" * 9,
    b"[" * 5_000,
    b"9" * 5_000,
    b"NaN",
    b"null",
    b"-",
    b"=",
    b"'",
    b"'''",
    b'"""',
    b"<",
    b"&#x110000;",
    b"<!--",
    b"<meta charset=rot13>",
    b"\xf0\x9f",
    b"1e999",
    f"../../{CANARY}".encode(),
)


def mutate(path: Path, rng: Random) -> str:
    """Change the file once; what was done, in a word or two."""
    if path.is_fifo():  # by an earlier change: to read it would be to wait
        return "nothing"
    if rng.random() < 0.04:
        return _system(path, rng)
    ways: list[Callable[[Path, Random], str]] = [_bytes]
    kind = path.suffix.removeprefix(".")
    ways += {"json": [_json] * 4, "jsonl": [_lines] * 4, "toml": [_toml] * 4, "tsv": [_cells] * 3, "csv": [_cells] * 3}.get(
        kind, []
    )
    ways += {"sqlite": [_database] * 4, "npz": [_arrays] * 2, "safetensors": [_safetensors] * 3}.get(kind, [])
    try:
        return rng.choice(ways)(path, rng)
    except Exception:  # noqa: BLE001 - what an earlier change left
        return _bytes(path, rng) if path.is_file() and not path.is_symlink() else "nothing"


def value(rng: Random) -> Any:
    if rng.random() < 0.15:
        return f"../../{CANARY}"
    # A copy: what is put into a tree may be changed there, and the next trial draws from the same.
    return rng.choice(TEXTS) if rng.random() < 0.55 else copy.deepcopy(rng.choice(VALUES))


def _bytes(path: Path, rng: Random) -> str:
    data, done = changed_bytes(path.read_bytes(), rng)
    path.write_bytes(data)
    return f"bytes {done}"


def changed_bytes(content: bytes, rng: Random) -> tuple[bytes, str]:
    """Cut, doubled, swapped or written over in one place or some; and how."""
    data, done = bytearray(content), []
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at, end = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
        end = min(end, at + rng.choice((1, 8, 64, 4_096)))
        way = rng.choice(("flip", "cut", "double", "insert", "token", "token", "end", "noise", "move"))
        if way == "flip" and data:
            data[at - 1] ^= 1 << rng.randrange(8)
        elif way == "cut":
            del data[at:end]
        elif way == "double":
            data[end:end] = data[at:end] * rng.choice((1, 2, 50))
        elif way == "insert":
            data[at:at] = rng.randbytes(rng.randint(1, 40))
        elif way == "token":
            data[at:at] = rng.choice(TOKENS)
        elif way == "end":
            del data[at:]
        elif way == "noise":
            data[at:end] = rng.randbytes(end - at)
        else:
            data = data[end:] + data[:end]
        done.append(way)
    return bytes(data), ",".join(dict.fromkeys(done))


def changed_tree(root: Any, rng: Random) -> Any:
    """The same tree with one node replaced, left out, renamed or put in too deep."""
    places: list[tuple[Any, Any]] = []
    stack = [root]
    while stack:
        node = stack.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            places.append((node, key))
            stack.append(node[key])
    if not places or rng.random() < 0.03:
        return value(rng)
    holder, key = rng.choice(places)
    way = rng.choice(("value", "value", "value", "gone", "name", "deep", "same"))
    if way == "value":
        holder[key] = f"../../{CANARY}" if isinstance(holder[key], str) and rng.random() < 0.4 else value(rng)
    elif way == "gone":
        del holder[key]
    elif way == "name" and isinstance(holder, dict):
        holder[str(rng.choice(TEXTS))] = holder.pop(key)
    elif way == "deep":
        deep: Any = holder[key]
        for _ in range(rng.choice((3, 60, 900))):
            deep = [deep] if rng.random() < 0.5 else {"a": deep}
        holder[key] = deep
    else:
        holder[key] = holder[rng.choice(list(holder))] if isinstance(holder, dict) else rng.choice(holder)
    return root


def _json(path: Path, rng: Random) -> str:
    root = json.loads(path.read_bytes())
    path.write_text(json.dumps(changed_tree(root, rng)), encoding="utf-8", errors="surrogatepass")
    return "json"


def _lines(path: Path, rng: Random) -> str:
    lines = path.read_bytes().splitlines(keepends=True)
    at = rng.randrange(len(lines))
    way = rng.choice(("tree", "tree", "tree", "double", "gone", "swap"))
    if way == "tree":
        changed = json.dumps(changed_tree(json.loads(lines[at]), rng), ensure_ascii=rng.random() < 0.5)
        lines[at] = changed.encode("utf-8", "surrogatepass") + b"\n"
    elif way == "double":
        lines.insert(rng.randrange(len(lines)), lines[at])
    elif way == "gone":
        del lines[at]
    else:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    path.write_bytes(b"".join(lines))
    return f"lines {way}"


def _toml(path: Path, rng: Random) -> str:
    root = changed_tree(tomllib.loads(path.read_text("utf-8")), rng)
    path.write_text(tomli_w.dumps(root), encoding="utf-8")
    return "toml"


def _cells(path: Path, rng: Random) -> str:
    between = "\t" if path.suffix == ".tsv" else ","
    rows = [line.split(between) for line in path.read_text("utf-8").splitlines()]
    row = rng.choice(rows)
    at = rng.randrange(len(row))
    way = rng.choice(("value", "value", "gone", "more"))
    if way == "value":
        row[at] = str(value(rng))
    elif way == "gone":
        del row[at]
    else:
        row.insert(at, str(value(rng)))
    path.write_text("\n".join(map(between.join, rows)) + "\n", encoding="utf-8", errors="surrogatepass")
    return f"cells {way}"


def _database(path: Path, rng: Random) -> str:
    database = sqlite3.connect(path)
    try:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = rng.choice(tables)
        column = rng.choice([row[1] for row in database.execute(f'PRAGMA table_info("{table}")')])
        new = rng.choice((*TEXTS[:4], *TEXTS[10:14], "[[", 0, -1, 2**62, 0.5, b"\xff\0", None))
        database.execute(f'UPDATE "{table}" SET "{column}" = ?', (new,))
        database.commit()
    finally:
        database.close()
    return f"database {table}.{column}"


def _arrays(path: Path, rng: Random) -> str:
    import numpy as np

    with np.load(path, allow_pickle=False) as file:
        arrays: dict[str, Any] = {name: file[name] for name in file.files}
    name = rng.choice(list(arrays))
    way = rng.choice(("pickled", "empty", "flat", "text", "nan", "gone", "wide"))
    old = arrays[name]
    if way == "gone":
        del arrays[name]
    else:
        made: dict[str, Callable[[], Any]] = {
            "pickled": lambda: np.array([{"a": 1}], dtype=object),
            "empty": lambda: old[:0] if old.ndim else np.zeros(0),
            "flat": lambda: old.reshape(-1),
            "text": lambda: np.array(["x\x1b[2J"]),
            "nan": lambda: np.full(old.shape, np.nan),
            "wide": lambda: np.zeros((*old.shape, 7)),
        }
        arrays[name] = made[way]()
    np.savez(path, **arrays)
    return f"arrays {way}"


def _safetensors(path: Path, rng: Random) -> str:
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.dumps(changed_tree(json.loads(data[8 : 8 + size]), rng)).encode()
    length = len(header) if rng.random() < 0.8 else rng.choice((0, 2**63, size * 1_000, len(header) - 1))
    path.write_bytes(length.to_bytes(8, "little") + header + data[8 + size :])
    return "header"


def _system(path: Path, rng: Random) -> str:
    """The file is not what it was to the file system."""
    way = rng.choice(("gone", "folder", "loop", "link", "empty", "pipe"))
    if way == "pipe" and path.parent.name in ("work", "sets"):
        way = "gone"  # a file that is named on the command line may be a pipe, and is waited for
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    if way == "folder":
        path.mkdir()
    elif way == "loop":
        path.symlink_to(path.name)
    elif way == "link":
        path.symlink_to("absent")
    elif way == "empty":
        path.touch()
    elif way == "pipe":
        os.mkfifo(path)
    return f"system {way}"
