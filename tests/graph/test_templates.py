from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import InvalidInput
from gnothi.graph.templates import Template, Templates, conceptnet, default, packaged, read
from gnothi.lab.named import templates as lab_templates
from tests.messages import refused


def test_conceptnets_relations_are_merged_to_seventeen() -> None:
    ours = conceptnet()
    assert len(ours.sentences) == 17
    assert {target for target, _ in ours.merged.values()} <= set(ours.sentences)
    assert ours.canonical("hand", "HasA", "thumb") == ("thumb", "PartOf", "hand")
    assert ours.template("HasProperty").say("ice", "cold") == "Ice has the property of cold."


def test_relations_of_the_medical_graph_have_sentences() -> None:
    ours = packaged("ddb")
    assert len(ours.sentences) == 15
    assert ours.template("isaningradientof").say("aspirin", "Alka-Seltzer") == "Aspirin is an ingredient of Alka-Seltzer."


@pytest.mark.parametrize(
    ("relation", "said"),
    [
        ("capitalOf", "Paris capital of France."),
        ("place_of_birth", "Paris place of birth France."),
        ("http://x.org/ns#isPartOf", "Paris is part of France."),
        ("dbpedia/genre", "Paris genre France."),
        ("ISO3166Code", "Paris ISO 3166 code France."),
        ("→", "Paris → France."),
    ],
)
def test_a_relation_without_a_sentence_is_said_by_its_name(relation: str, said: str) -> None:
    assert default(relation).say("Paris", "France") == said


def test_names_with_capitals_of_their_own_stay() -> None:
    assert default("is").say("iPhone", "phone") == "iPhone is phone."
    assert default("is").say("a phone", "iPhone") == "A phone is iPhone."
    assert default("is").say("ß", "a letter") == "ß is a letter."
    assert Template.of("{head}{tail}").say("", "") == ""


@given(st.text(max_size=10), st.text(max_size=10), st.text(max_size=10), st.booleans(), st.text(), st.text())
def test_a_sentence_says_head_and_tail(before: str, between: str, after: str, swap: bool, head: str, tail: str) -> None:
    pieces = [text.translate({ord("{"): None, ord("}"): None}) for text in (before, between, after)]
    places = ("{tail}", "{head}") if swap else ("{head}", "{tail}")
    sentence = f"{pieces[0]}{places[0]}{pieces[1]}{places[1]}{pieces[2]}"
    template = Template.of(sentence)
    assert template.sentence == sentence
    said = sentence.replace("{head}", "\0").replace("{tail}", "\1").replace("\0", head, 1) if "\1" not in head else None
    if said is not None and "\0" not in "".join(pieces) and "\1" not in "".join(pieces):
        assert template.say(head, tail)[1:] == said.replace("\1", tail, 1)[1:] or not template.say(head, tail)


@pytest.mark.parametrize(
    "sentence", ["", "{head}", "{head} {head} {tail}", "{head} {other} {tail}", "{head} } {tail}", "{} {tail}"]
)
def test_sentences_without_both_places_are_refused(sentence: str) -> None:
    with refused(ValueError):
        Template.of(sentence)


def test_a_file_is_read_and_written_back(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_text('[relations]\nr = "{tail} by {head}."\n"a b" = "{head} ab {tail}"\n[merged]\ns = "-r"\n', encoding="utf-8")
    templates = read(path)
    assert templates.template("r").say("x1", "y1") == "Y1 by x1."
    assert Templates.from_dict(templates.as_dict()) == templates


@pytest.mark.parametrize(
    "text",
    [
        "[relations",
        '[relations]\nr = "no places"',
        "[relations]\nr = 3",
        "relations = 3",
        "[other]",
        '[merged]\na = "b"\nb = "c"',
        '[relations]\na = "{head} {tail}"\n[merged]\na = "b"',
    ],
)
def test_files_that_cannot_be_used_say_why(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.toml"
    path.write_text(text, encoding="utf-8")
    with refused(InvalidInput):
        read(path)


def test_no_file(tmp_path: Path) -> None:
    with refused(InvalidInput):
        read(tmp_path / "none.toml")


def test_the_laboratory_speaks_its_own_sentences() -> None:
    said = lab_templates().template("birthplace").say("Ada Pepol", "Bonmouth")
    assert said == "The birthplace of Ada Pepol is Bonmouth."
