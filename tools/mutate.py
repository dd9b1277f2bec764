"""Mutation tests: how many small mistakes in methods, signals and calibration do the tests notice?

    python -m tools.mutate --draw 40 --seed 15     choose places at random, write tools/mutations.toml
    python -m tools.mutate --out results.json      try each in a copy of the tree; the same command again goes on
    python -m tools.mutate --report results.json   what was killed, what survived

Places are drawn evenly from everything in the three packages that can be mutated, never chosen by hand. What can be:
comparisons, arithmetic, ``and``/``or``, ``not``, signs, numbers, booleans, both sides of a conditional expression, whether an
``if`` or a filter of a comprehension holds, the first two arguments of a call, min/max and any/all, and whether a call without
a result is made. Arguments that are literals stay: a setting's help in the place of its default is noticed at once. Left out,
since no test of behaviour could tell: annotations, decorators, what is inside ``raise``, ``zip``'s ``strict``, code for type
checkers only.

A mutation is killed by the tests named after its module, or by those of the three packages. ``--rest`` then runs every other
test of the default suite on the survivors. A survivor is a gap in the tests or changes nothing that can be seen; which of the
two takes a person to say: ``equivalent = "why"`` in the file.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("methods", "signals", "calibration")
PLACES = ROOT / "tools" / "mutations.toml"
SECONDS = 1200
"""A mutation whose tests take longer is killed: something hangs."""

Status = Literal["killed", "survived", "gone"]

_COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">"),
    ast.LtE: ("<", ">="),
    ast.Gt: (">=", "<"),
    ast.GtE: (">", "<="),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
}
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
}
_OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_TEXTS = (ast.JoinedStr, ast.List, ast.Tuple)


@dataclass(frozen=True, slots=True)
class Mutation:
    """``old`` occurs once in ``module`` (a path from the root) and is to be replaced by ``new``."""

    id: str
    module: str
    line: int
    what: str
    old: str
    new: str
    equivalent: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """The source between two offsets, replaced."""

    start: int
    end: int
    text: str
    what: str


@dataclass
class _Source:
    """A module's text, and where the nodes of its tree stand in it."""

    text: str
    starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.starts = [0]
        for line in self.text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        """The offset in characters; ``ast`` counts columns in bytes."""
        beginning = self.text[self.starts[line - 1] : self.starts[line]].encode()[:column].decode()
        return self.starts[line - 1] + len(beginning)

    def span(self, node: Any) -> tuple[int, int]:
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def of(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def replaced(self, node: ast.AST, text: str, what: str) -> Edit:
        return Edit(*self.span(node), text, what)


def edits(text: str) -> list[Edit]:
    """Every mutation of a module's source, in the order in which they stand there."""
    source = _Source(text)
    found = [edit for node in _nodes(ast.parse(text)) for edit in _of_node(source, node)]
    return sorted(found, key=lambda edit: (edit.start, edit.end, edit.text))


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below, but for parts where no behaviour is."""
    if isinstance(node, ast.Raise) or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.keyword) and child.arg == "strict":
                continue
            if isinstance(child, ast.AST):
                yield from _nodes(child)


def _of_node(source: _Source, node: ast.AST) -> Iterator[Edit]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            for other in _COMPARISONS[type(op)]:
                yield source.replaced(node, f"{source.of(left)} {other} {source.of(right)}", f"comparison becomes {other}")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC and not _is_text(left) and not _is_text(right):
            other = _ARITHMETIC[type(op)]
            yield source.replaced(node, f"{source.of(left)} {other} {source.of(right)}", f"arithmetic becomes {other}")
        case ast.BoolOp(op=op, values=values):
            other = "or" if isinstance(op, ast.And) else "and"
            yield source.replaced(
                node, "(" + f" {other} ".join(f"({source.of(value)})" for value in values) + ")", f"becomes {other}"
            )
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield source.replaced(node, f"({source.of(operand)})", "not or minus dropped")
        case ast.Constant(value=bool(value)):
            yield source.replaced(node, str(not value), f"becomes {not value}")
        case ast.Constant(value=int() | float() as number):
            other_number = number + 1 if isinstance(number, int) else float(f"{number * 1.5 or 1.0:.6g}")
            yield source.replaced(node, repr(other_number), f"{number} becomes {other_number}")
        case ast.IfExp(test=test, body=body, orelse=orelse):
            swapped = f"({source.of(orelse)} if {source.of(test)} else {source.of(body)})"
            yield source.replaced(node, swapped, "sides of a conditional swapped")
        case ast.If(test=test) | ast.While(test=test):
            yield source.replaced(test, "False", "branch never taken")
        case ast.comprehension(ifs=filters):
            for condition in filters:
                yield source.replaced(condition, "True", "filter dropped")
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield source.replaced(node, "pass", "call dropped")
        case ast.AugAssign():
            yield source.replaced(node, "pass", "assignment dropped")
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in _OPPOSITES:
            other = _OPPOSITES[node.func.id]
            yield source.replaced(node.func, other, f"becomes {other}")
        if len(node.args) > 1 and not any(isinstance(argument, ast.Starred | ast.Constant) for argument in node.args[:2]):
            first, second = node.args[:2]
            between = source.text[source.span(first)[1] : source.span(second)[0]]
            swapped = source.of(second) + between + source.of(first)
            if source.of(first) != source.of(second):
                yield Edit(source.span(first)[0], source.span(second)[1], swapped, "first two arguments swapped")


def _is_text(node: ast.AST) -> bool:
    """Whether it is plainly no number, so that another operator would only be a TypeError."""
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, _TEXTS) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def candidates(root: Path) -> list[tuple[str, Edit]]:
    """Everything that can be mutated: (module, edit)."""
    found = []
    for package in PACKAGES:
        for path in sorted((root / "src" / "gnothi" / package).rglob("*.py")):
            found += [(path.relative_to(root).as_posix(), edit) for edit in edits(path.read_text("utf-8"))]
    return found


def draw(root: Path, count: int, seed: int) -> list[Mutation]:
    """``count`` of the candidates, evenly, in the order of the tree."""
    every = candidates(root)
    chosen = sorted(random.Random(seed).sample(range(len(every)), count))
    return [_mutation(root, number, *every[index]) for number, index in enumerate(chosen, 1)]


def _mutation(root: Path, number: int, module: str, edit: Edit) -> Mutation:
    """With as many whole lines around as make the old text occur once."""
    text = (root / module).read_text("utf-8")
    start = text.rfind("\n", 0, edit.start) + 1
    end = text.find("\n", edit.end) + 1 or len(text)
    while text.count(text[start:end]) > 1:
        start = text.rfind("\n", 0, start - 1) + 1
    new = text[start : edit.start] + edit.text + text[edit.end : end]
    return Mutation(f"{number:02d}", module, text.count("\n", 0, edit.start) + 1, edit.what, text[start:end], new)


def read(path: Path) -> list[Mutation]:
    return [Mutation(**row) for row in tomllib.loads(path.read_text("utf-8"))["mutation"]]


def write(path: Path, mutations: Sequence[Mutation], opening: str) -> None:
    import tomli_w

    rows = [{key: value for key, value in asdict(mutation).items() if value != ""} for mutation in mutations]
    path.write_text(f"# {opening}\n\n" + tomli_w.dumps({"mutation": rows}, multiline_strings=True), "utf-8")


def apply(root: Path, mutation: Mutation) -> tuple[Path, str] | None:
    """Put the mutation in place: (the file, its text before). None where the old text no longer stands in one place."""
    named = root / mutation.module
    anywhere = [path for package in PACKAGES for path in sorted((root / "src" / "gnothi" / package).rglob("*.py"))]
    for paths in ([named] if named.is_file() else [], anywhere):
        held = [path for path in paths if path.read_text("utf-8").count(mutation.old) == 1]
        if len(held) == 1:
            before = held[0].read_text("utf-8")
            held[0].write_text(before.replace(mutation.old, mutation.new), "utf-8")
            return held[0], before
    return None


def stages(root: Path, module: Path, rest: bool) -> list[list[str]]:
    """Test files, the likeliest to notice first."""
    tests = root / "tests"
    if rest:
        rooms = {tests / package for package in (*PACKAGES, "tools")}
        every = sorted({path.parent if path.parent != tests else path for path in tests.rglob("test_*.py")})
        return [[str(path.relative_to(root)) for path in every if not rooms & {path, *path.parents}]]
    named = [str(path.relative_to(root)) for path in sorted(tests.rglob(f"test_{module.stem}.py"))]
    own = [package for package in PACKAGES if package in module.parts]
    return [stage for stage in (named, *([f"tests/{package}"] for package in (*own, *sorted({*PACKAGES} - {*own})))) if stage]


def run(root: Path, mutation: Mutation, rest: bool) -> dict[str, Any]:
    """Try one mutation in a copy of the tree."""
    started = time.monotonic()
    placed = apply(root, mutation)
    if placed is None:
        return {"status": "gone"}
    module, before = placed
    try:
        for stage in stages(root, module, rest):
            failed = _first_failure(root, stage)
            if failed:
                return {"status": "killed", "by": failed, "seconds": round(time.monotonic() - started)}
        return {"status": "survived", "seconds": round(time.monotonic() - started)}
    finally:
        module.write_text(before, "utf-8")


def _first_failure(root: Path, tests: Sequence[str]) -> str | None:
    """The test that failed first, or what else went wrong; None where all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "-rfE", "--tb=no"]
    command += [f"--basetemp={root / 'basetemp'}", *tests]
    for attempt in ("first", "last"):
        try:
            done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"nothing after {SECONDS} s"
        if done.returncode == 0:
            return None
        lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        if lines:
            return lines[0][:200]
        if attempt == "last":
            return f"pytest exit code {done.returncode}: {(done.stdout + done.stderr)[-300:]}"
    return None


def copy(root: Path, to: Path) -> None:
    """The tree as it stands: what git tracks, and what is new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, check=True
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, to / name)
            shutil.copymode(root / name, to / name)


def forget(out: Path, wanted: Sequence[str]) -> None:
    """Drop these results, so that the places are tried again."""
    if wanted and out.is_file():
        kept = {key: value for key, value in json.loads(out.read_text("utf-8")).items() if key not in wanted}
        out.write_text(json.dumps(kept, indent=1), "utf-8")


def try_all(mutations: Sequence[Mutation], out: Path, rest: bool) -> None:
    """Results go to ``out`` one by one; those there are kept. With ``rest``, only survivors are tried again."""
    results: dict[str, Any] = json.loads(out.read_text("utf-8")) if out.is_file() else {}
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        root = Path(folder)
        copy(ROOT, root)
        for mutation in mutations:
            before = results.get(mutation.id)
            if (before is None) == rest or (rest and before and (before["status"] != "survived" or "rest" in before)):
                continue
            result = run(root, mutation, rest)
            results[mutation.id] = {**before, "rest": result} if rest and before else result
            out.write_text(json.dumps(results, indent=1), "utf-8")
            _say(
                f"{mutation.id} {result['status']:9} {mutation.module}:{mutation.line} {mutation.what}; {result.get('by', '')}"
            )


def report(mutations: Sequence[Mutation], out: Path) -> None:
    results = json.loads(out.read_text("utf-8"))
    counts = dict.fromkeys(("killed", "killed by the rest", "survived", "equivalent", "gone", "not tried"), 0)
    for mutation in mutations:
        result = results.get(mutation.id, {"status": "not tried"})
        state = result["status"]
        if state == "survived" and result.get("rest", {}).get("status") == "killed":
            state = "killed by the rest"
        if state == "survived" and mutation.equivalent:
            state = "equivalent"
        counts[state] += 1
        if state in ("survived", "equivalent", "gone"):
            _say(f"{mutation.id} {state}: {mutation.module}:{mutation.line}, {mutation.what}. {mutation.equivalent}")
            _say("".join(f"    - {line}\n" for line in mutation.old.splitlines()), end="")
            _say("".join(f"    + {line}\n" for line in mutation.new.splitlines()), end="")
    _say(", ".join(f"{count} {state}" for state, count in counts.items()))


def _say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", type=int, metavar="N", help="choose N places and write them to the file")
    parser.add_argument("--seed", type=int, default=15, help="of the draw (default: 15)")
    parser.add_argument("--places", type=Path, default=PLACES, help="the file of places (default: tools/mutations.toml)")
    parser.add_argument("--out", type=Path, help="try the places; results as JSON")
    parser.add_argument("--only", metavar="ID,ID", help="with --out: these places alone, again")
    parser.add_argument("--rest", action="store_true", help="with --out: run every other test on the survivors")
    parser.add_argument("--report", type=Path, metavar="RESULTS", help="say what was found")
    given = parser.parse_args(arguments)
    if given.draw:
        drawn = f"python -m tools.mutate --draw {given.draw} --seed {given.seed}"
        opening = f"{given.draw} of {len(candidates(ROOT))} places, drawn by: {drawn}"
        write(given.places, draw(ROOT, given.draw, given.seed), opening)
    if given.out:
        wanted = given.only.split(",") if given.only else []
        forget(given.out, wanted)
        try_all([place for place in read(given.places) if not wanted or place.id in wanted], given.out, given.rest)
    if given.report:
        report(read(given.places), given.report)


if __name__ == "__main__":
    main()
