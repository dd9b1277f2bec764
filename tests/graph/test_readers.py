from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.graph.readers import LABEL, ConceptNet, JsonLines, Malformed, NTriples, Triple, Tsv, local_name, parser
from gnothi.retrieval.ingest.base import START, Checkpoint, Unreadable
from gnothi.retrieval.ingest.json_file import lines
from tests.messages import refused


def of_tsv(first: str, columns: list[str] | None = None) -> Tsv:
    made = parser(Path("t.tsv"), first, columns, "en", {"IsA"})
    assert isinstance(made, Tsv)
    return made


def test_tsv_without_header() -> None:
    assert of_tsv("a\tis\tb").parse("Ice  cream\t is \tcold") == Triple("Ice cream", "is", "cold")
    assert of_tsv("a\tis\tb").parse("a\tis\tb\t2.5") == Triple("a", "is", "b", 2.5)


def test_tsv_with_header_in_any_order() -> None:
    reader = of_tsv("Tail\tnotes\tHEAD\tweight\trelation")
    assert reader.header
    assert reader.parse("b\tseen\ta\t3\tis") == Triple("a", "is", "b", 3.0)
    assert of_tsv("subject\tpredicate\tobject").parse("a\tis\tb") == Triple("a", "is", "b")


def test_tsv_with_columns_named_and_false_lines_left_out() -> None:
    reader = of_tsv("IsA\tobject\ttool\t1", ["relation", "tail", "head", "label"])
    assert reader.parse("IsA\tobject\ttool\t1") == Triple("tool", "IsA", "object")
    assert reader.parse("IsA\tpet store\tferret\t0") is None


def test_tsv_whose_first_column_is_a_relation_is_asked_about() -> None:
    with refused(InvalidInput):
        of_tsv("IsA\tobject\ttool")


@pytest.mark.parametrize(
    "columns", [["head", "tail"], ["head", "relation", "tail", "tail"], ["head", "relation", "tail", "what"]]
)
def test_columns_must_be_known_and_complete(columns: list[str]) -> None:
    with refused(InvalidSetting):
        of_tsv("a\tb\tc", columns)


@pytest.mark.parametrize(
    "line",
    [
        "a\tis",
        "a",
        "a\t \tb",
        "a\tis\tb\tx",
        "a\tis\tb\tnan",
        "a\tis\t" + "b" * 1001,
        "a\tis\tb\t1\t2",
    ],
)
def test_malformed_tsv(line: str) -> None:
    with refused(Malformed):
        of_tsv("a\tis\tb").parse(line)


def test_json_lines() -> None:
    reader = JsonLines()
    assert reader.parse('{"head": "a", "relation": "is", "tail": "b", "other": 1}') == Triple("a", "is", "b")
    assert reader.parse('{"subject": "a", "predicate": "is", "object": "b", "weight": 2}') == Triple("a", "is", "b", 2.0)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        "nope",
        "[" * 100_000,
        '{"head": "a"}',
        '{"head": 1, "relation": "r", "tail": "b"}',
        '{"head": "a", "relation": "r", "tail": "b", "weight": "heavy"}',
        '{"head": "a", "relation": "r", "tail": "b", "weight": true}',
        '{"head": "a", "relation": "r", "tail": "b", "weight": ' + "9" * 4000 + "}",
        '{"head": "a", "relation": "r", "tail": "b", "weight": ' + "9" * 5000 + "}",
        '{"head": ' + "9" * 4000 + ', "relation": "r", "tail": "b"}',
        *('{"head": ' + "[" * depth + "]" * depth + ', "relation": "r", "tail": "b"}' for depth in (900, 2000, 100_000)),
    ],
    ids=range(14),
)
def test_malformed_json_lines(line: str) -> None:
    with pytest.raises(Malformed):
        JsonLines().parse(line)


@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_whatever_json_holds_is_a_triple_or_malformed(head: str, relation: str, tail: str) -> None:
    try:
        triple = JsonLines().parse(json.dumps({"head": head, "relation": relation, "tail": tail}))
    except Malformed:
        return
    kept = [" ".join(part.encode("utf-8", "replace").decode().split()) for part in (head, relation, tail)]
    assert triple is not None
    assert list(triple[:3]) == kept


DUMP = '/a/[/r/IsA/,/c/en/hot_dog/n/,/c/en/food/]\t/r/IsA\t/c/en/hot_dog/n/wn/food\t/c/en/food\t{"dataset": "x", "weight": 2.0}'


def test_conceptnets_dump() -> None:
    reader = parser(Path("assertions.csv"), DUMP, None, "en", ())
    assert reader.parse(DUMP) == Triple("hot dog", "IsA", "food", 2.0)
    assert reader.parse(DUMP.replace("/c/en/food", "/c/de/essen")) is None
    assert reader.parse(DUMP.replace("\t/c/en/food", "\thttp://example.org/x")) is None
    assert ConceptNet("de").parse(DUMP.replace("/c/en/", "/c/de/")) == Triple("hot dog", "IsA", "food", 2.0)
    for broken in (DUMP[:-1], DUMP.replace("\t/r/", "\t/x/"), DUMP.replace("weight", "w"), "/a/[\t"):
        with pytest.raises(Malformed):
            reader.parse(broken)


def test_another_csv_is_refused() -> None:
    with refused(InvalidInput):
        parser(Path("x.csv"), "a,b,c", None, "en", ())


N = NTriples("en")


@pytest.mark.parametrize(
    ("line", "triple"),
    [
        ("<http://x.org/Ice_cream> <http://x.org/p#isA> <http://x.org/Food> .", Triple("<http://x.org/Ice_cream>", "isA", "<http://x.org/Food>")),
        ('<http://x/a><http://x/p>"a \\"b\\"\\n\\u00e9 \\U0001F989".# done', Triple("<http://x/a>", "p", 'a "b" é 🦉')),
        ('<http://x/a> <http://x/p> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .', Triple("<http://x/a>", "p", "5")),
        ('<http://x/a> <http://x/p> "colour"@en-GB .', Triple("<http://x/a>", "p", "colour")),
        ('<http://x/a> <http://x/p> "Farbe"@de .', None),
        ("_:b0 <http://x/p> <http://x/a> .", None),
        ("<http://x/a> <http://x/p> _:b0 .", None),
        ("# a comment", None),
        ('<http://x/a> <http://www.w3.org/2000/01/rdf-schema#label> "Aunt A"@en .', Triple("<http://x/a>", LABEL, "Aunt A")),
        ('<http://x/a> <http://x/p> "<http://x/b>" .', Triple("<http://x/a>", "p", "http://x/b")),
        (f'<http://x/a> <http://x/p> "{"long " * 300}" .', None),
    ],
)  # fmt: skip
def test_n_triples(line: str, triple: Triple | None) -> None:
    assert N.parse(line) == triple


@pytest.mark.parametrize(
    "line",
    [
        "<http://x/a> <http://x/p> <http://x/b>",
        "<http://x/a> <http://x/p> .",
        '"a" <http://x/p> <http://x/b> .',
        "<http://x/a> _:p <http://x/b> .",
        '<http://x/a> <http://x/p> "open .',
        '<http://x/a> <http://x/p> "bad \\x" .',
        "<http://x/a b> <http://x/p> <http://x/b> .",
        '<http://x/a> <http://x/p> "\\uD800" .',
        "<http://x/a> <http://x/p> <http://x/b> . more",
        "<http://x/\\u000A> <http://x/p> <http://x/b> .",
        "a is b",
    ],
)
def test_malformed_n_triples(line: str) -> None:
    with pytest.raises(Malformed):
        N.parse(line)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ENDS = st.text(st.characters(categories=["L", "N"], include_characters="_-~%20äé東"), min_size=1, max_size=12)


@given(ENDS, TEXTS, st.sampled_from([None, "en", "de"]))
def test_n_triples_that_rdflib_writes_are_read(end: str, text: str, language: str | None) -> None:
    rdflib = pytest.importorskip("rdflib")
    node, predicate = rdflib.URIRef(f"http://x.org/{end}"), rdflib.URIRef("http://x.org/p")
    graph = rdflib.Graph().add((node, predicate, rdflib.Literal(text, lang=language)))
    (line,) = [line for line in graph.serialize(format="nt", encoding="utf-8").decode().split("\n") if line]
    plain = " ".join(text.split())
    plain = plain[1:-1].strip() if plain.startswith("<") and plain.endswith(">") else plain
    expected = Triple(f"<{node}>", "p", plain) if plain and language != "de" else None
    assert N.parse(line) == expected


@given(TEXTS)
def test_what_we_read_rdflib_reads(text: str) -> None:
    rdflib = pytest.importorskip("rdflib")
    escaped = "".join(f"\\U{ord(letter):08X}" for letter in text)
    line = f'<http://x/a> <http://x/p> "{escaped}" .'
    (literal,) = rdflib.Graph().parse(data=line, format="nt").objects()
    assert str(literal) == text
    triple = N.parse(line)
    if triple and not text.strip().startswith("<"):
        assert triple.tail == " ".join(text.split())


def test_iris_are_called_by_their_ends() -> None:
    assert local_name("http://dbpedia.org/resource/New_York_%28state%29") == "New York (state)"
    assert local_name("http://x.org/p#") == "p"
    assert local_name("urn") == "urn"


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["t.tsv", "t.tsv.gz"])
def test_reading_goes_on_at_any_line(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, "a\tis\tb\r\n\n\u00e9\tis\td\nlast".encode())
    every = list(lines(path, START))
    assert [(line.text, line.number) for line in every] == [("a\tis\tb", 1), ("\u00e9\tis\td", 3), ("last", 4)]
    assert next(lines(path, Checkpoint(every[0].offset, 1))).text == "\u00e9\tis\td"
    assert list(lines(path, Checkpoint(every[-1].offset, 4))) == []


def test_damaged_files(tmp_path: Path) -> None:
    whole = gzip.compress(b"a\tis\tb\n" * 10_000)
    (tmp_path / "cut.tsv.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "no.tsv.gz").write_bytes(b"a\tis\tb\n")
    (tmp_path / "binary.tsv").write_bytes(b"\0\1\2" * 100)
    for name in ("cut.tsv.gz", "no.tsv.gz", "binary.tsv"):
        with refused(Unreadable):
            list(lines(tmp_path / name, START))
    (found,) = lines(write(tmp_path / "latin.tsv", b"caf\xe9\tis\tb"), START)
    assert found.text is None
    assert "not UTF-8" in found.problem


@given(st.text(st.characters(exclude_characters="\n")) | st.text('<>"\\_:.@^ \tabu019{}[],/'))
def test_any_line_is_a_triple_left_out_or_malformed(line: str) -> None:
    for reader in (of_tsv("a\tis\tb"), JsonLines(), N, ConceptNet("en")):
        try:
            triple = reader.parse(line)
        except Malformed:
            continue
        assert triple is None or (triple.head and triple.tail and "\n" not in triple.head + triple.relation + triple.tail)


@pytest.mark.parametrize("line", ["_:" + "a." * 100_000, "<" + "a" * 200_000, '<a> <b> "' + "\\" * 200_001, "<a> " * 100_000])
@pytest.mark.timeout(120)
def test_hostile_lines_are_refused_at_once(line: str) -> None:
    before = time.thread_time()
    with pytest.raises(Malformed):
        N.parse(line)
    assert time.thread_time() - before < 10  # of a processor, whatever else it has to do
