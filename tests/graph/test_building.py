from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gnothi.errors import IndexUnavailable, InvalidInput, InvalidSetting
from gnothi.graph import building, templates
from gnothi.graph.building import GraphProgress, GraphReport, build_graph
from gnothi.graph.graph import Graph, is_graph, open_folder, read_manifest
from gnothi.graph.lemmas import PLURALS
from gnothi.graph.templates import Templates
from gnothi.locks import hold
from gnothi.retrieval.folder import FILE
from gnothi.retrieval.registry import open_index
from tests import made_data as made
from tests.messages import refused
from tests.stopping import Stopping, moments


def write(path: Path, *rows: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(row.replace(" | ", "\t") + "\n" for row in rows), encoding="utf-8")
    return path


def build(out: Path, *sources: Path, skip_invalid: bool = False, templates: Templates | None = None) -> GraphReport:
    return build_graph(sources, out, lemmatiser=PLURALS, skip_invalid=skip_invalid, templates=templates)


def facts(out: Path, *nodes: str, cap: int = 1000) -> list[str]:
    graph = open_folder(out)
    return [f"{fact.head} | {fact.relation} | {fact.tail}" for fact in graph.neighbourhood_blocking(nodes, 1, cap).facts]


def contents(out: Path) -> dict[str, bytes]:
    """The bytes of all tables."""
    tables = out / read_manifest(out).tables
    return {file.name: file.read_bytes() for file in sorted(tables.iterdir())}


def test_formats_of_a_folder_become_one_graph(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write(data / "a.tsv", "tea | is | drink")
    write(data / "b" / "b.jsonl", '{"head": "tea", "relation": "grows in", "tail": "Assam"}')
    write(data / "c.nt", "<http://x/Assam> <http://x/partOf> <http://x/India> .")
    (data / "d.tsv.gz").write_bytes(gzip.compress(b"tea\tis\tdrink\ntea\tis\thot\n"))
    write(data / "notes.txt", "nothing")
    report = build(tmp_path / "graph", data)
    assert (report.nodes, report.facts, report.read, report.sources) == (6, 4, 5, 4)
    assert "notes.txt is of no known format (.txt)" in report.skipped.first[0]
    assert facts(tmp_path / "graph", "tea") == ["tea | is | drink", "tea | grows in | Assam", "tea | is | hot"]
    # An IRI is not the same as a name that looks like its end.
    assert facts(tmp_path / "graph", "Assam (http://x/Assam)") == ["Assam (http://x/Assam) | partOf | India"]


def test_iris_are_called_by_their_labels(tmp_path: Path) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    source = write(
        tmp_path / "wiki.nt",
        "<http://x/Q1> <http://x/capitalOf> <http://x/Q2> .",
        f'<http://x/Q1> {label} "Orvel"@en .',
        f'<http://x/Q1> {label} "Orvelburg"@de .',
        f'<http://x/Q2> {label} "Bresk"@en .',
    )
    report = build(tmp_path / "graph", source)
    assert (report.nodes, report.facts, report.empty) == (2, 1, 1)
    (fact,) = open_folder(tmp_path / "graph").neighbourhood_blocking(["Orvel"], 1, 5).facts
    assert fact.text == "Orvel capital of Bresk."


def test_heavier_facts_come_first_and_equal_facts_merge(tmp_path: Path) -> None:
    rows = ["hub | r | one | 1", "hub | r | two | 2", "hub | r | one | 3", "hub | r | three | 2"]
    report = build(tmp_path / "graph", write(tmp_path / "t.tsv", *rows))
    assert report.facts == 3
    assert facts(tmp_path / "graph", "hub") == ["hub | r | one", "hub | r | two", "hub | r | three"]
    assert facts(tmp_path / "graph", "hub", cap=1) == ["hub | r | one"]


def test_the_same_command_again_reads_nothing_and_a_changed_file_replaces_its_facts(tmp_path: Path) -> None:
    out, source, other = tmp_path / "graph", tmp_path / "t.tsv", write(tmp_path / "u.tsv", "tea | is | drink")
    write(source, "tea | is | hot", "tea | is | green")
    build(out, source, other)
    before = contents(out)
    again = build(out, source, other)
    assert (again.read, again.unchanged, again.facts) == (0, 2, 3)
    assert contents(out) == before
    write(source, "tea | is | cold today")
    changed = build(out, source)
    assert (changed.read, changed.facts, changed.nodes) == (1, 2, 3)
    assert facts(out, "tea") == ["tea | is | drink", "tea | is | cold today"]


def test_builds_add_up_and_sentences_stay(tmp_path: Path) -> None:
    out = tmp_path / "graph"
    build(out, write(tmp_path / "a.tsv", "tea | IsA | drink", "tea | R | hot"), templates=templates.conceptnet())
    report = build(out, write(tmp_path / "b.tsv", "milk | InstanceOf | drink"))
    assert report.without_sentence == ("R",)
    found = open_folder(out).neighbourhood_blocking(["drink"], 1, 5).facts
    assert [fact.text for fact in found] == ["Tea is a kind of drink.", "Milk is a kind of drink."]
    # New sentences need no reading.
    report = build(out, tmp_path / "b.tsv", templates=Templates.of({"InstanceOf": "{tail}: {head}"}))
    assert report.read == 0
    assert open_folder(out).neighbourhood_blocking(["milk"], 1, 5).facts[0].text == "Drink: milk"


def test_conceptnets_dump_brings_its_sentences(tmp_path: Path) -> None:
    row = '/a/x\t/r/HasA\t/c/en/hand\t/c/en/thumb\t{"weight": 1.0}'
    source = write(tmp_path / "dump.csv", row.replace("/a/x", "/a/[x]"))
    build(tmp_path / "graph", source)
    assert facts(tmp_path / "graph", "hand") == ["thumb | PartOf | hand"]


def test_a_malformed_line_is_named_and_what_was_before_it_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "graph"
    source = write(tmp_path / "t.tsv", "tea | is | hot", "broken", "tea | is | green")
    with refused(InvalidInput):
        build(out, source)
    with refused(IndexUnavailable):
        open_folder(out)
    report = build(out, source, skip_invalid=True)
    assert (report.facts, report.invalid.count) == (2, 1)
    assert report.invalid.first == [f"{source}, line 2: got 1 tab-separated field, expected 3 (head, relation, tail)"]
    assert build(out, source, skip_invalid=True).invalid.count == 1


def test_a_failed_build_leaves_the_graph_that_was_there(tmp_path: Path) -> None:
    out = tmp_path / "graph"
    build(out, write(tmp_path / "a.tsv", "tea | is | hot"))
    with pytest.raises(InvalidInput):
        build(out, write(tmp_path / "b.tsv", "milk | is | white", "broken"))
    assert facts(out, "tea", "milk") == ["tea | is | hot"]
    assert not read_manifest(out).complete
    write(tmp_path / "b.tsv", "milk | is | white")
    assert build(out, tmp_path / "b.tsv").facts == 2
    assert read_manifest(out).complete


def test_an_open_graph_survives_a_build(tmp_path: Path) -> None:
    out = tmp_path / "graph"
    build(out, write(tmp_path / "a.tsv", "tea | is | hot"))
    old = open_folder(out)
    build(out, write(tmp_path / "b.tsv", "tea | is | green"))
    assert len(old.neighbourhood_blocking(["tea"], 1, 5).facts) == 1
    assert len(facts(out, "tea")) == 2
    (out / "tables-of-a-killed-build").mkdir()
    build(out, write(tmp_path / "c.tsv", "tea | is | black"))
    assert len([path for path in out.iterdir() if path.name.startswith("tables-")]) == 1


def test_one_build_at_a_time(tmp_path: Path) -> None:
    source = write(tmp_path / "a.tsv", "tea | is | hot")
    build(tmp_path / "graph", source)
    with (
        hold(tmp_path / "graph" / "import" / ".lock", AssertionError, "busy."),
        refused(IndexUnavailable),
    ):
        build(tmp_path / "graph", source)


def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "a.tsv", "tea | is | hot")
    (tmp_path / "file").write_text("")
    with refused(InvalidSetting):
        build(tmp_path / "file", source)
    write(tmp_path / "other" / "x", "mine")
    with refused(IndexUnavailable):
        build(tmp_path / "other", source)
    assert os.listdir(tmp_path / "other") == ["x"]
    with refused(IndexUnavailable):
        open_folder(tmp_path / "nowhere")
    assert not is_graph(tmp_path / "other")


def test_sources_without_facts_are_an_error(tmp_path: Path) -> None:
    with refused(InvalidInput):
        build(tmp_path / "graph", write(tmp_path / "empty.tsv"))


@pytest.mark.parametrize(
    "damage", ["missing", "cut", "header", "pipe", "kind", "sizes", "outside", "json", "version", "field", "text"]
)
def test_a_damaged_graph_says_so(tmp_path: Path, damage: str) -> None:
    out = tmp_path / "graph"
    build(out, write(tmp_path / "a.tsv", "tea | is | hot"))
    tables, manifest = out / read_manifest(out).tables, json.loads((out / FILE).read_text())
    if damage == "missing":
        (tables / "heads.npy").unlink()
    elif damage == "cut":
        (tables / "heads.npy").write_bytes(b"\x93NUMPY")
    elif damage == "header":
        content = (tables / "heads.npy").read_bytes()
        (tables / "heads.npy").write_bytes(content.replace(b"{", b"((", 1))
    elif damage == "pipe":
        (tables / "heads.npy").unlink()
        os.mkfifo(tables / "heads.npy")
    elif damage == "kind":
        np.save(tables / "heads.npy", np.array(["x"]))
    elif damage == "sizes":
        np.save(tables / "surface_nodes.npy", np.arange(9, dtype=np.int32))
    elif damage == "outside":
        tables.rename(tmp_path / tables.name)
        (out / FILE).write_text(json.dumps(manifest | {"tables": f"../{tables.name}"}))
    elif damage == "json":
        (out / FILE).write_text("{")
    elif damage == "version":
        (out / FILE).write_text(json.dumps(manifest | {"version": 99}))
    elif damage == "text":
        (out / FILE).write_text(json.dumps(manifest | {"lemmatiser": []}))
    else:
        (out / FILE).write_text(json.dumps(manifest | {"relations": [["r", "no places"]]}))
    with refused(IndexUnavailable):
        open_folder(out)
    with pytest.raises(IndexUnavailable):
        open_index(out)


def test_numbers_that_lead_nowhere_are_told_when_they_are_met(tmp_path: Path) -> None:
    build(tmp_path / "graph", write(tmp_path / "a.tsv", "tea | is | hot"))
    tables = tmp_path / "graph" / read_manifest(tmp_path / "graph").tables
    np.save(tables / "tails.npy", np.array([77], dtype=np.int32))
    graph = open_folder(tmp_path / "graph")
    with refused(IndexUnavailable):
        graph.neighbourhood_blocking(["tea"], 1, 5)
    np.save(tables / "surface_nodes.npy", np.full(2, 77, dtype=np.int32))
    with refused(IndexUnavailable):
        open_folder(tmp_path / "graph").link_blocking("tea")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("log", "7"),
        ("log", "["),
        ("log", '{"rows": "1"}'),
        ("log", '{"rows": 1, "names_bytes": 1, "relations": [null], "sources": []}'),
        ("templates", "7"),
        ("templates", "["),
        ("templates", '{"relations": 7}'),
    ],
)
def test_damaged_notes_of_a_build_are_said(tmp_path: Path, file: str, text: str) -> None:
    source = write(tmp_path / "a.tsv", "tea | is | hot")
    build(tmp_path / "graph", source, templates=Templates.of({"is": "{head} is {tail}."}))
    (tmp_path / "graph" / "import" / f"{file}.json").write_text(text)
    with refused(IndexUnavailable):
        build(tmp_path / "graph", source)


@pytest.mark.parametrize("number", [-1, 9])
@pytest.mark.parametrize("column", range(4))
def test_numbers_that_nothing_has_are_said(tmp_path: Path, number: int, column: int) -> None:
    source = write(tmp_path / "a.tsv", "tea | is | hot")
    build(tmp_path / "graph", source)
    rows = np.fromfile(tmp_path / "graph" / "import" / "triples.i32", dtype=np.int32)
    rows[column] = number
    rows.tofile(tmp_path / "graph" / "import" / "triples.i32")
    source.write_text("tea\tis\twarm\n")
    with refused(IndexUnavailable):
        build(tmp_path / "graph", source)


def test_a_header_is_no_fact_wherever_it_stands(tmp_path: Path) -> None:
    source = write(tmp_path / "t.tsv", "", "head | relation | tail", "tea | is | hot")
    assert build(tmp_path / "graph", source).facts == 1
    named = build_graph([source], tmp_path / "named", columns=["tail", "relation", "head"], lemmatiser=PLURALS)
    assert named.facts == 1
    assert facts(tmp_path / "named", "tea") == ["hot | is | tea"]


_FULL_DISK = """
import resource, sys
from gnothi.cli.main import run
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
sys.exit(run(["index", "build", "--graph", sys.argv[1], "--out", sys.argv[2]]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on file sizes")
def test_a_full_disk_is_told_and_what_was_committed_stays(tmp_path: Path) -> None:
    out = tmp_path / "graph"
    build(out, write(tmp_path / "a.tsv", "tea | is | hot"))
    source = write(tmp_path / "b.tsv", *(f"node number {i} | r | other {i}" for i in range(20_000)))
    environment = os.environ | {"PYTHONPATH": str(Path(building.__file__).parents[2])}
    command = [sys.executable, "-c", _FULL_DISK, str(source), str(out)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    assert facts(out, "tea") == ["tea | is | hot"]
    assert build(out, source).facts == 20_001


def conceptnets_slice(data: Path, out: Path, facts: int) -> tuple[Graph, list[bool]]:
    """The graph of the facts labelled true, of which there are as many as false ones; which questions name one of its nodes."""
    columns = ["relation", "tail", "head", "label"]
    source = data / "conceptnet.tsv"
    report = build_graph([source], out, columns=columns, templates=templates.conceptnet(), lemmatiser=PLURALS)
    assert (report.read, report.empty, report.invalid.count) == (facts, facts, 0)
    graph = open_folder(out)
    records = [json.loads(line) for line in (data / "commonsenseqa.dev.jsonl").read_text("utf-8").splitlines()]
    return graph, [bool(graph.link_blocking(record["question"])) for record in records]


def test_only_true_facts_of_conceptnets_slice_are_linked(tmp_path: Path, made_data: Path) -> None:
    graph, linked = conceptnets_slice(made_data, tmp_path / "graph", made.QUESTIONS)
    assert linked == [number % 2 == 1 for number in range(made.QUESTIONS)]
    (fact,) = graph.neighbourhood_blocking(["river 3"], 1, 1).facts
    assert fact.text == "River 3 can be found at town 3."


@pytest.mark.slow
def test_conceptnets_slice_is_named_by_most_questions(tmp_path: Path, shared_data: Path) -> None:
    graph, linked = conceptnets_slice(shared_data, tmp_path / "graph", 2400)
    assert sum(linked) / len(linked) > 0.85
    (ferret,) = graph.neighbourhood_blocking(["ferret"], 1, 1).facts
    assert ferret.text == "Ferret can be found at pet store."


def test_progress_ends_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_TELL_EVERY", 1)
    seen: list[GraphProgress] = []
    source = write(tmp_path / "a.tsv", *(f"n{i} | is | m{i}" for i in range(20)))
    build_graph([source], tmp_path / "graph", lemmatiser=PLURALS, on_progress=seen.append)
    reading = [step for step in seen if step.stage == "reading"]
    assert reading[-1].done == reading[-1].total == source.stat().st_size
    assert [step.done for step in reading] == sorted(step.done for step in reading)
    assert seen[-1] == GraphProgress("arranging", 1.0, 1.0, 20)


KILLS = 3


def start(out: Path, *sources: Path) -> Stopping:
    return Stopping("tests.graph.stopping_graph", str(out), *map(str, sources))


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_killed_builds_go_on_to_the_same_bytes(tmp_path: Path, how: signal.Signals) -> None:
    rng = random.Random(7)
    sources = []
    for part in range(2):
        rows = [
            f"node {rng.randrange(900)} | r{rng.randrange(5)} | node {rng.randrange(900)} | {rng.randrange(3)}"
            for _ in range(3000)
        ]
        sources.append(write(tmp_path / f"{part}.tsv", *rows))
    packed = tmp_path / "1.tsv.gz"
    packed.write_bytes(gzip.compress(sources[1].read_bytes()))
    sources[1] = packed

    before = write(tmp_path / "z.tsv", "tea | is | hot")
    out, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    build(out, before)
    build(undisturbed, before)
    steps = start(undisturbed, *sources).finish()
    log = out / "import" / "log.json"
    partial = 0
    for number in moments(steps, KILLS):
        process = start(out, *sources)
        assert process.go(number)
        process.kill(rng.uniform(0, 0.02), how)
        partial += 0 < json.loads(log.read_text())["rows"] - 1 < 6_000
        assert facts(out, "tea") == ["tea | is | hot"]
    assert partial, "no kill fell into the reading"
    start(out, *sources).finish()
    assert facts(out, "tea") == ["tea | is | hot"]
    assert contents(out) == contents(undisturbed)
