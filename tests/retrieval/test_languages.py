"""Words of every script: ten invented facts in sixteen languages, and forms of words that look alike."""

from __future__ import annotations

import json
import re
import sys
import types
import unicodedata
from functools import cache
from pathlib import Path

import pytest
import tantivy
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.errors import InvalidSetting
from gnothi.retrieval import analysis, languages, scripts
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.build import build
from gnothi.retrieval.folder import read_manifest
from gnothi.retrieval.ingest.split import LANGUAGE, count_words, split
from gnothi.retrieval.writer import IndexWriter
from gnothi.types import Passage
from tests.messages import refused
from tests.retrieval.documents import made_up, write_jsonl

SETS = [json.loads(line) for line in (Path(__file__).parent / "languages.jsonl").read_text("utf-8").splitlines()]
PASSAGES = [Passage(f"{one['code']}{i}", text) for one in SETS for i, text in enumerate(one["passages"])]
ENGLISH = "The keeper of the old house told a long story about the river, the ferry and the people of the village."
STEMMED = sorted(languages._CODES.keys() - {languages.NONE})


@cache
def mixed(language: str) -> BM25Index:
    return BM25Index.in_memory([*PASSAGES, *made_up(1, 300)], language=language)


def first(index: BM25Index, query: str) -> str:
    found = index.search_blocking(query, 1)
    return found[0].passage.id if found else ""


def found_first(code: str, language: str) -> int:
    questions = next(one["questions"] for one in SETS if one["code"] == code)
    return sum(first(mixed(language), question) == f"{code}{i}" for i, question in enumerate(questions))


@pytest.mark.parametrize("fields", ["cross", "best"])
@pytest.mark.parametrize("asked", ["5 \u00b5m", "5 \u03bcm"])
def test_micro_is_found_as_the_sign_and_as_the_greek_letter(asked: str, fields: analysis.Fields) -> None:
    passages = [
        Passage("sign", "Grains of 3 \u00b5m."),
        Passage("letter", "Grains of 2 \u03bcm."),
        Passage("none", "Grains of 4 mm."),
    ]
    found = BM25Index.in_memory(passages, fields=fields).search_blocking(asked, 3)
    assert {one.passage.id for one in found} == {"sign", "letter"}


@pytest.mark.parametrize(
    ("code", "least"),
    [(code, 10) for code in ("en", "ru", "el", "ar", "he", "hi", "zh", "ja", "ko", "th", "km", "vi")] + [("uk", 8)],
)
def test_questions_find_their_passages_in_one_index_of_all_languages(code: str, least: int) -> None:
    assert found_first(code, "english") >= least


@pytest.mark.parametrize(("code", "language"), [("de", "german"), ("fi", "finnish"), ("tr", "turkish"), ("vi", "none")])
def test_an_index_of_a_latin_language_knows_its_stems(code: str, language: str) -> None:
    assert found_first(code, language) >= 9


NFD = unicodedata.normalize("NFD", "Émile Zörbügén")
ALIKE = [
    ("The wind\u00admill", "windmill"),
    ("The wind\u200bmill", "windmill"),
    ("The wind\u2060mill", "Windmills"),
    ("The wind\x00mill", "windmill"),
    ("windmill", "wind\u00admill"),
    ("Émile Zörbügén", NFD),
    (NFD, "Zörbügén"),
    (NFD, "zorbugen"),
    ("ﾌｳｼｬ", "フウシャ"),
    ("フウシャ", "ﾌｳｼｬ"),
    ("ＷＩＮＤmill", "windmill"),
    ("ﬁne ﬂour", "fine"),
    ("fine flour", "ﬂour"),
    ("كتـــاب جديد", "كتاب"),
    ("لِلْمَدْرَسَةِ", "المدرسة"),
    ("والمدارس الكبيرة", "المدارس"),
    ("کتاب فارسی", "كتاب"),
    ("שָׁלוֹם", "שלום"),
    ("שלום", "וְשָׁלוֹם"),
    ("İZMİR", "izmir"),
    ("İzmir", "İZMİR"),
    ("ISPARTA", "ısparta"),
    ("за́мок", "замок"),
    ("ёлки", "елка"),
    ("рукописей", "рукопись"),
    ("Ἀθῆναι", "ΑΘΗΝΑΙ"),
    ("हिन्दी की किताबें", "हिंदी की किताब"),
    ("क़लम", "कलम"),
    ("বইয়ের দোকান", "বইয়ের"),
    ("மரங்கள்", "மரங்களில்"),
    ("საქართველოსთვის", "საქართველოს"),
    ("Հայաստանում", "Հայաստանի"),
    ("የኢትዮጵያ ታሪክ", "ታሪክ"),
    ("הממשלה החליטה", "ממשלה"),
    ("ממשלה", "לממשלה"),
    ("הכנסת בירושלים", "כנסת"),
    ("כנסת", "שבכנסת"),
    ("המשטרה", "משטרה"),
    ("מגדלור", "המגדלור"),
    ("שהמלך הגיע", "מלך"),
    ("והבית", "בית"),
    ("الوحدة", "وحدة"),
    ("واحد", "الواحد"),
    ("ورقة", "بالورقة"),
    ("ጠባቂ", "ጠባቂው"),
    ("ቤት", "ቤቱ"),
    ("ኢትዮጵያ", "በኢትዮጵያ"),
    ("ሰራ ሀገር", "ሐገር"),
    ("ሠራ", "ሰራ"),
    ("ፀሐይ", "ጸሀይ"),
    ("ዓለም", "ኣለም"),
    ("წიგნი", "წიგნის"),
    ("წიგნი", "წიგნები"),
    ("ქალაქი", "ქალაქში"),
    ("ქალაქი", "ᲥᲐᲚᲐᲥᲘᲡ"),
    ("լույս", "լույսը"),
    ("ծանրորդ", "ծանրորդների"),
    ("ՔԱՂԱՔԻ", "քաղաք"),
    ("iPhone15を買う", "iPhone 15"),
    ("iPhone15を買う", "iPhone15"),
    ("使用Windows11系统", "Windows"),
    ("使用Windows11系统", "Windows11"),
    ("5kmです", "5 km"),
    ("5kmです", "5km"),
    ("ใช้Windows11", "Windows 11"),
    ("၁၈၂၀ ခုနှစ်", "1820"),
    ("سنة ١٨٢٠", "1820"),
    ("塔建于1820年", "1820"),
    ("新款iPhone手机很贵", "iPhone"),
    ("鲸鱼", "鲸"),
    ("搭鲸鱼", "鱼"),
    ("ปูนา", "ปู"),
    ("World War Ⅱ", "ii"),
    ("The engi-\nneer came", "engineer"),
    ("Rindfleischetikettierungsüberwachungsaufgabe", "rindfleischetikettierungsüberwachungsaufgabe"),
    ("достопримечательностями", "достопримечательностями"),
    ("x" * 5000, "x" * 5000),
]


@pytest.mark.parametrize(("text", "query"), ALIKE)
def test_forms_that_mean_the_same_find_each_other(text: str, query: str) -> None:
    index = BM25Index.in_memory([Passage("wanted", text), *made_up(2, 20), Passage("other", "nothing of it")])
    assert first(index, query) == "wanted"
    assert first(index, f"{query} zzz") == "wanted" or scripts.room(scripts.units(query)[0])


DIFFERENT = [
    ("ממשלה", "שלה"), ("משכן", "שכן"), ("מכתב", "כתב"), ("ספר", "בר"), ("وحدة", "واحد"), ("ጠባቂ", "ጠቅላይ"), ("ቤት", "ልጅ"),
    ("ქალაქი", "ქალწული"), ("წიგნი", "წითელი"), ("լույս", "լուր"), ("քաղաք", "քաղցր"), ("5kmです", "6 km"), ("ሀ5", "ሀ4"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "query"), DIFFERENT)
def test_words_that_only_begin_alike_do_not_find_each_other(text: str, query: str) -> None:
    one, other = ({*analysis.words(written, "english")} for written in (text, query))
    assert one - other
    assert other - one


@pytest.mark.parametrize("query", ["😀", "。", "\u200b", "—", "\u064b", "ー。", "?!"])
def test_a_query_without_words_finds_nothing_or_what_holds_it(query: str) -> None:
    index = BM25Index.in_memory([Passage("a", "plain words 😀 here")])
    assert index.search_blocking(query, 3) == ()


@pytest.mark.parametrize("text", ["don't stop 😀 ½ cup of Google™", "Café – “naïve” … 5 €", "x² + H₂O", ENGLISH])
def test_plain_text_is_left_to_the_first_field(text: str) -> None:
    assert scripts.special_tokens(text)[0] == []
    assert set(analysis._units(text, "english")) <= {".", " "}
    assert scripts.normal(text) == text
    assert analysis._query_terms(text, "english")[0] == analysis.analyser().analyze(text)


def test_few_passages_of_another_script_are_weighed_as_if_all_were_of_it() -> None:
    russian = [Passage(f"ru{i}", text) for i, text in enumerate(SETS[5]["passages"])]
    few = BM25Index.in_memory([*russian, *made_up(3, 2000, words=12)])
    assert few.search_blocking("кто строил ветряные мельницы", 1)[0].score > 10


@pytest.mark.parametrize("language", STEMMED)
def test_stemmers_leave_other_scripts_alone(language: str) -> None:
    script = {"arabic": "المدرسة", "greek": "αθηνας", "russian": "маяка", "tamil": "மரங்கள்"}
    others = [word for name, word in script.items() if name != language] + ["गाँव", "ქართული", "שלום", "灯塔", "ไทย", "1820"]
    others += ["running"] if language in script else []
    chain = analysis._chain(tantivy.Tokenizer.whitespace(), [], language)
    assert chain.analyze(" ".join(others)) == others


@settings(max_examples=40)
@given(st.text(max_size=60))
def test_whatever_is_written_the_normal_form_is_stable_and_text_is_found_by_itself(text: str) -> None:
    once = scripts.normal(text)
    assert scripts.units(once) == scripts.units(text)
    index = BM25Index.in_memory([Passage("a", text), Passage("b", "")])
    analysis._units(text, "turkish")
    found = index.search_blocking(text, 2)
    assert [one.passage.id for one in found] in ([], ["a"])


def test_a_second_build_in_another_language_is_refused(tmp_path: Path) -> None:
    source, out = write_jsonl(tmp_path / "a.jsonl", [Passage("a", "Die Mühlen")]), tmp_path / "index"
    build([source], out, language="de")
    assert read_manifest(out).language == "german"
    assert first(BM25Index.open(out), "Mühle") == "a"
    build([source], out)
    with refused(InvalidSetting):
        build([source], out, language="french")
    with refused(InvalidSetting):
        build([source], tmp_path / "other", language="klingon")
    with refused(InvalidSetting):
        build([source], "lancedb:some.toml", language="german")
    with IndexWriter(out) as writer:
        assert writer.language == "german"


def test_shards_of_two_languages_are_refused(tmp_path: Path) -> None:
    for language in ("german", "english"):
        build([write_jsonl(tmp_path / f"{language}.jsonl", [Passage(language, "a")])], tmp_path / language, language=language)
    with refused(InvalidSetting):
        BM25Index.open(tmp_path / "german", tmp_path / "english")


GERMAN = "Der Wärter des alten Hauses erzählte eine lange Geschichte vom Fluss, von der Fähre und den Leuten im Dorf."


@pytest.mark.parametrize(
    ("text", "guess", "language", "says"),
    [
        (GERMAN, "de", "english", "100 of 100 passages looked at seem to be german.*<--language german>"),
        (GERMAN, "de", "german", ""),
        (GERMAN, "pl", "english", "seem to be 'pl'.*<--language none>"),
        (GERMAN, "pl", "none", ""),
        (ENGLISH, "en", "german", "seem to be english.*<--language english>"),
        (ENGLISH, "de", "english", ""),  # which is seen without a guess
        (ENGLISH, "en", "russian", ""),
        ("塔尔诺山上的风车由木匠建成。", "zh", "english", ""),
        ("12 34", "de", "english", ""),
    ],
)
def test_a_language_that_seems_another_is_told(
    text: str, guess: str, language: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("py3langid")
    monkeypatch.setattr(module, "classify", lambda _: (guess, -1.0), raising=False)
    monkeypatch.setitem(sys.modules, "py3langid", module)
    sample = languages.Sample()
    for _ in range(128 * 100 - 100):
        sample.look(text)
    found = sample.doubt(language)
    assert bool(found) == bool(says)
    assert re.search(says, found)


def test_text_in_no_language_is_not_taken_for_one() -> None:
    sample = languages.Sample()
    for start in range(40):
        sample.look(" ".join(f"word{number}" for number in range(start, start + 60)))
    assert sample.doubt("english") == ""


def test_without_the_guesser_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid", None)
    sample = languages.Sample()
    for _ in range(5):
        sample.look(GERMAN)
    assert sample.doubt("english") == ""


def test_the_guesser_knows_the_languages_of_these_tests() -> None:
    pytest.importorskip("py3langid")
    for one in SETS:
        sample = languages.Sample()
        for text in one["passages"]:
            sample.look(text)
        wanted = {"de": "german", "fi": "finnish", "tr": "turkish", "vi": "none"}.get(one["code"], "")
        assert (f"<--language {wanted}>" in sample.doubt("english")) == bool(wanted)


@pytest.mark.parametrize(
    ("text", "words"),
    [("塔尔诺山上的风车", 4), ("iPhone手机", 2), ("กังหันลมบนเนินเขา", 4), ("언덕의 풍차", 2), ("フウシャ", 2), ("x" * 41, 2)],
)
def test_words_are_counted_where_none_are_set_apart(text: str, words: int) -> None:
    assert count_words(text) == words


def test_a_passage_of_chinese_is_as_long_as_its_words() -> None:
    text = "".join(SETS[11]["passages"]) * 20
    lengths = [len(one) for one in split([text], 100)]
    assert 150 <= min(lengths) <= max(lengths) <= 210
    assert all(one.endswith("。") for one in split([text], 100))


def test_sentences_end_as_in_the_language_of_the_index() -> None:
    text = "Er kam am 3. Oktober mit dem Zug. Dann ging er."
    assert [*split([text], 7)] != ["Er kam am 3. Oktober mit dem Zug.", "Dann ging er."]
    token = LANGUAGE.set("de")
    try:
        assert [*split([text], 8)] == ["Er kam am 3. Oktober mit dem Zug.", "Dann ging er."]
    finally:
        LANGUAGE.reset(token)
