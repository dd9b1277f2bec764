"""What does a knowledge graph cost? Import, also resumed after a kill; opening, linking, neighbourhoods.

    python -m benchmarks.graph --nodes 800000 --facts 2500000 [--peers] [--json]

Names of one to four made-up words and as many facts as wanted between them, by a power law, so that there are hubs. Every
measurement runs in a process of its own, whose peak of resident memory is told; CPU seconds beside wall seconds, which say
little on a shared machine. The killed import gets SIGKILL half-way through its source and must end with the same bytes.
``--peers`` loads a tenth of the triples into networkx and rdflib, too. Real triples: the slice of ConceptNet and the questions
of CommonsenseQA in the folder of shared data, where it is there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._data import find_data
from benchmarks.retrieval import peak_mb, vocabulary

RELATIONS = 17
SENTENCES = 2_000
QUERIES = 1_000
ENTITIES = 3  # of a query, as many as a question names
CAPS = (30, 100)
LIMITS = {"import_peak_mb": 1500, "searching_peak_mb": 1500, "open_ms": 100, "link_ms_mean": 1, "two_hops_cap_100_ms_p95": 50}
FILLERS = "where would the find of near some if they ever with another what is a used for in which people often".split()


def made_up_names(count: int) -> list[str]:
    words, rng = vocabulary(), np.random.default_rng(1)
    names: dict[str, None] = {}
    while len(names) < count:
        lengths = rng.integers(1, 5, count)
        drawn = words[(len(words) * rng.random((count, 4)) ** 2).astype(int)]  # short words oftener
        names |= dict.fromkeys(" ".join(row[:length]) for row, length in zip(drawn.tolist(), lengths.tolist(), strict=True))
    return list(names)[:count]


def write_triples(path: Path, nodes: int, facts: int) -> None:
    """Every node is a head once; the rest of the heads and all tails follow a power law, each in an order of its own."""
    names, rng = made_up_names(nodes), np.random.default_rng(2)
    weights = 1 / (np.arange(nodes) + 10) ** 0.8
    cumulative = np.cumsum(weights / weights.sum())
    heads, tails = (np.minimum(np.searchsorted(cumulative, rng.random(facts)), nodes - 1) for _ in range(2))
    heads[: min(nodes, facts)] = np.arange(min(nodes, facts))
    tails = rng.permutation(nodes)[tails]
    relations = rng.integers(0, RELATIONS, facts)
    with path.open("w", encoding="utf-8") as file:
        for head, relation, tail in zip(heads.tolist(), relations.tolist(), tails.tolist(), strict=True):
            file.write(f"{names[head]}\tR{relation}\t{names[tail]}\n")


def rss_mb() -> float:
    try:
        return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) / 1024
    except (OSError, IndexError):  # not Linux
        return float("nan")


def spread(name: str, values: list[float]) -> dict[str, float]:
    return {
        f"{name}_mean": statistics.fmean(values),
        f"{name}_p50": statistics.median(values),
        f"{name}_p95": statistics.quantiles(values, n=20)[-1],
    }


def measure_import(source: Path, out: Path) -> dict[str, float]:
    from gnothi.graph.building import build_graph

    started, cpu = time.perf_counter(), time.process_time()
    report = build_graph([source], out)
    return {
        "nodes": report.nodes,
        "facts": report.facts,
        "import_s": time.perf_counter() - started,
        "import_cpu_s": time.process_time() - cpu,
        "import_peak_mb": peak_mb(),
        "disk_mb": sum(file.stat().st_size for file in out.rglob("*") if file.is_file()) / 1e6,
        "of_it_tables_mb": sum(file.stat().st_size for file in out.glob("tables-*/*")) / 1e6,
    }


def import_until_killed(source: Path, out: Path) -> None:
    """Says on standard output how far it is, for whoever kills it."""
    from gnothi.graph.building import GraphProgress, build_graph

    def tell(progress: GraphProgress) -> None:
        sys.stdout.write(f"{progress.done / progress.total if progress.stage == 'reading' else 1.0}\n")
        sys.stdout.flush()

    build_graph([source], out, on_progress=tell)


def measure_resumed(source: Path, out: Path, undisturbed: Path) -> dict[str, Any]:
    """Kill an import half-way, end it with the same command and compare with the one that was not disturbed."""
    with subprocess.Popen(child_command("until_killed", source, out), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if float(line) >= 0.5:
                process.send_signal(signal.SIGKILL)
                break
    rest = in_child("import", source, out)
    return {
        "resumed_cpu_s": rest["import_cpu_s"],
        "resumed_share_of_cpu": rest["import_cpu_s"],  # divided by the whole's below
        "resumed_same_bytes": digest(out) == digest(undisturbed),
    }


def digest(out: Path) -> str:
    found = hashlib.sha256()
    for file in sorted(out.glob("tables-*/*")):
        found.update(file.name.encode() + file.read_bytes())
    return found.hexdigest()


def measure_searching(out: Path) -> dict[str, float]:
    from gnothi.graph.graph import open_folder

    started = time.perf_counter()
    graph = open_folder(out)
    row = {"open_ms": (time.perf_counter() - started) * 1e3, "opened_rss_mb": rss_mb()}
    names = sample_names(out)
    began = time.perf_counter()
    graph.link_blocking("The first text loads the lemmas.")
    row["first_link_ms"] = (time.perf_counter() - began) * 1e3
    texts = list(sentences(names))
    times, mentions = [], 0
    for text in texts:
        cpu = time.thread_time()
        mentions += len(graph.link_blocking(text))
        times.append((time.thread_time() - cpu) * 1e3)
    row |= {"sentence_characters": statistics.fmean(map(len, texts)), "mentions_a_sentence": mentions / len(texts)}
    row |= spread("link_ms", times)
    for cap in CAPS:
        times, sizes = [], []
        for query in range(QUERIES):
            nodes = names[ENTITIES * query : ENTITIES * (query + 1)]
            cpu = time.thread_time()
            found = graph.neighbourhood_blocking(nodes, 2, cap)
            times.append((time.thread_time() - cpu) * 1e3)
            sizes.append(float(len(found.facts)))
        row |= spread(f"two_hops_cap_{cap}_ms", times) | {f"two_hops_cap_{cap}_facts_p50": statistics.median(sizes)}
    return row | {"searching_rss_mb": rss_mb(), "searching_peak_mb": peak_mb()}


def sample_names(out: Path) -> list[str]:
    """Heads and tails of random triples: hubs come as often as they are spoken of."""
    lines = (out / "import" / "names.txt").read_text("utf-8").splitlines()
    rows = np.fromfile(next((out / "import").glob("triples.*")), dtype=np.int32).reshape(-1, 4)
    rng = np.random.default_rng(3)
    drawn = rows[rng.integers(0, len(rows), 3 * QUERIES)]
    return [lines[row[0] if number % 2 else row[2]] for number, row in enumerate(drawn.tolist())]


def sentences(names: list[str]) -> Iterator[str]:
    """About 128 characters, two or three names in plain words, some in the plural."""
    rng = random.Random(4)
    for _ in range(SENTENCES):
        words: list[str] = []
        while sum(map(len, words)) + len(words) < 120:
            words += rng.choices(FILLERS, k=rng.randrange(2, 5))
            words.append(rng.choice(names) + rng.choice(["", "", "s", "'s", ","]))
        yield " ".join(words).capitalize() + "?"


def measure_networkx(source: Path) -> dict[str, float]:
    import networkx as nx

    before, cpu = rss_mb(), time.process_time()
    graph = nx.MultiDiGraph()
    with source.open(encoding="utf-8") as file:
        for line in file:
            head, relation, tail = line.rstrip("\n").split("\t")
            graph.add_edge(head, tail, key=relation)
    return {"cpu_s": time.process_time() - cpu, "mb": rss_mb() - before}


def measure_rdflib(source: Path) -> dict[str, float]:
    import rdflib

    before, cpu = rss_mb(), time.process_time()
    graph, space = rdflib.Graph(), rdflib.Namespace("http://example.org/")
    with source.open(encoding="utf-8") as file:
        for line in file:
            head, relation, tail = line.rstrip("\n").replace(" ", "_").split("\t")
            graph.add((space[head], space[relation], space[tail]))
    return {"cpu_s": time.process_time() - cpu, "mb": rss_mb() - before}


def measure_ours(source: Path, out: Path) -> dict[str, float]:
    """Import and, in this process, what an open graph takes after 1,000 neighbourhoods."""
    from gnothi.graph.building import build_graph
    from gnothi.graph.graph import open_folder

    cpu = time.process_time()
    build_graph([source], out)
    return {"cpu_s": time.process_time() - cpu, "import_peak_mb": peak_mb(), "nodes": open_folder(out).nodes}


def measure_ours_open(out: Path) -> dict[str, float]:
    from gnothi.graph.graph import open_folder

    before = rss_mb()
    graph, names = open_folder(out), sample_names(out)
    for query in range(QUERIES):
        graph.link_blocking(names[query])
        graph.neighbourhood_blocking([names[query]], 2, 100)
    return {"mb": rss_mb() - before}


def measure_real(shared: Path, folder: Path) -> dict[str, float]:
    """Share of questions, and of their choices, that name a concept of the slice."""
    from gnothi.graph.building import build_graph
    from gnothi.graph.graph import open_folder
    from gnothi.graph.templates import conceptnet

    columns = ["relation", "tail", "head", "label"]
    report = build_graph([shared / "conceptnet.tsv"], folder / "real", columns=columns, templates=conceptnet())
    graph = open_folder(folder / "real")
    records = [json.loads(line) for line in (shared / "commonsenseqa.dev.jsonl").read_text("utf-8").splitlines()]
    mentions = [graph.link_blocking(record["question"]) for record in records]
    choices = [choice for record in records for choice in record["choices"]["text"]]
    around = [
        len(graph.neighbourhood_blocking([mention.node for mention in found], 2, 100).facts) for found in mentions if found
    ]
    concept = [
        any(mention.node == record["question_concept"] for mention in found)
        for record, found in zip(records, mentions, strict=True)
        if graph.neighbourhood_blocking([record["question_concept"]], 1, 1).facts
    ]
    return {
        "real_nodes": report.nodes,
        "real_facts": report.facts,
        "real_questions": len(records),
        "real_questions_linked": sum(map(bool, mentions)) / len(records),
        "real_mentions_a_question": sum(map(len, mentions)) / len(records),
        "real_choices_linked": sum(bool(graph.link_blocking(choice)) for choice in choices) / len(choices),
        "real_question_concept_in_slice": len(concept) / len(records),
        "real_question_concept_found_where_in_slice": sum(concept) / max(len(concept), 1),
        "real_facts_around_p50": statistics.median(around),
    }


def child_command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "benchmarks.graph", "--child", *map(str, arguments)]


def in_child(*arguments: object) -> dict[str, float]:
    measured: dict[str, float] = json.loads(
        subprocess.run(child_command(*arguments), check=True, stdout=subprocess.PIPE, text=True).stdout
    )
    return measured


def child(job: str, *paths: str) -> dict[str, float]:
    jobs: dict[str, Any] = {
        "import": measure_import,
        "searching": measure_searching,
        "networkx": measure_networkx,
        "rdflib": measure_rdflib,
        "ours": measure_ours,
        "ours_open": measure_ours_open,
        "real": measure_real,
    }
    measured: dict[str, float] = jobs[job](*map(Path, paths))
    return measured


def measure(nodes: int, facts: int, folder: Path) -> dict[str, Any]:
    source, out = folder / "triples.tsv", folder / "graph"
    write_triples(source, nodes, facts)
    row: dict[str, Any] = in_child("import", source, out)
    resumed = measure_resumed(source, folder / "killed", out)
    row |= resumed | {"resumed_share_of_cpu": resumed["resumed_cpu_s"] / row["import_cpu_s"]}
    return row | in_child("searching", out)


def measure_peers(nodes: int, facts: int, folder: Path) -> dict[str, Any]:
    source = folder / "smaller.tsv"
    write_triples(source, nodes, facts)
    found: dict[str, Any] = {"peers_facts": facts}
    for peer in ("networkx", "rdflib"):
        try:
            row = in_child(peer, source)
        except subprocess.CalledProcessError:
            found[f"{peer}"] = "not installed"
            continue
        found |= {f"{peer}_cpu_s": row["cpu_s"], f"{peer}_mb": row["mb"]}
    ours = in_child("ours", source, folder / "smaller")
    found |= {"ours_cpu_s": ours["cpu_s"], "ours_import_peak_mb": ours["import_peak_mb"]}
    return found | {"ours_mb": in_child("ours_open", folder / "smaller")["mb"]}


def shown(value: object) -> str:
    return f"{value:,.{3 if value < 10 else 1 if value < 100 else 0}f}" if isinstance(value, float) else str(value)


def main() -> int:
    if sys.argv[1:3] == ["--child", "until_killed"]:
        import_until_killed(*map(Path, sys.argv[3:]))
        return 0
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(child(*sys.argv[2:])))  # noqa: T201
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=80_000, help="names, of which nearly all get facts [%(default)s]")
    parser.add_argument("--facts", type=int, default=250_000, help="triples [%(default)s]")
    parser.add_argument("--peers", action="store_true", help="a tenth of the triples in networkx and rdflib, too")
    parser.add_argument("--folder", help="where to work; needs about 300 bytes a triple (default: a temporary folder)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        row = measure(options.nodes, options.facts, folder)
        if options.peers:
            row |= measure_peers(options.nodes // 10, options.facts // 10, folder)
        if (data := find_data()) and (data / "conceptnet.tsv").is_file():
            row |= in_child("real", data, folder)
    print(json.dumps(row, indent=1) if options.json else "\n".join(f"{key:<44} {shown(row[key])}" for key in row))  # noqa: T201
    broken = [f"{key} {row[key]:.2f}" for key, limit in LIMITS.items() if row[key] > limit]
    if not row["resumed_same_bytes"]:
        broken.append("the resumed import differs")
    if broken:
        print("over the limit: " + ", ".join(broken), file=sys.stderr)  # noqa: T201
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
