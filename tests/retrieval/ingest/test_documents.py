"""Plain text, Markdown and HTML."""

from __future__ import annotations

import re
import time
from pathlib import Path

import bs4
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.retrieval.ingest.base import START, Unreadable
from gnothi.retrieval.ingest.formats import FORMATS
from gnothi.retrieval.ingest.html import visible_text
from gnothi.retrieval.ingest.markdown import front_matter
from tests.messages import refused


def passages(path: Path, words: int = 100) -> list[tuple[str, str, str]]:
    found = [p for step in FORMATS[path.suffix](path, "docs/" + path.name, words, START) for p in step.passages]
    assert [p.id for p in found] == [f"docs/{path.name}#{i}" for i in range(1, len(found) + 1)]
    return [(p.id, p.title, p.text) for p in found]


def titled(path: Path, content: str | bytes) -> list[tuple[str, str]]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return [(title, text) for _, title, text in passages(path)]


def notices(path: Path, content: bytes) -> list[str]:
    path.write_bytes(content)
    return [step.notice for step in FORMATS[path.suffix](path, "key", 100, START) if step.notice]


# Plain text


def test_a_heading_that_opens_its_section_is_one(tmp_path: Path) -> None:
    """As in lists of questions; other buttons are no text."""
    page = "<h2><button>How long?</button></h2><p>A year.<button>Copy</button>"
    assert titled(tmp_path / "a.html", page) == [("a > How long?", "A year.")]


def test_text_is_titled_by_its_file_and_cut_on_sentences(tmp_path: Path) -> None:
    sentence = "Exactly ten words are in this sentence of the file."
    found = titled(tmp_path / "My notes.txt", "\n\n".join([f"{sentence} {sentence}"] * 8))
    assert [(title, len(text.split())) for title, text in found] == [("My notes", 100), ("My notes", 60)]


def test_a_large_text_streams_without_loss(tmp_path: Path) -> None:
    text = "".join(f"Sentence {i} of a long text.{' ' if i % 7 else chr(10) * 2}" for i in range(40_000))
    found = titled(tmp_path / "long.txt", text)
    assert " ".join(part for _, part in found) == " ".join(text.split())
    assert max(len(part.split()) for _, part in found) <= 100


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html"])
def test_empty_and_foreign_text_is_reported(tmp_path: Path, name: str) -> None:
    assert notices(tmp_path / name, b"") == ["holds no text"]
    assert notices(tmp_path / name, b" \n ") == ["holds no text"]
    assert "read as windows-1252" in notices(tmp_path / name, b"caf\xe9")[0]


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html"])
def test_binary_content_is_refused(tmp_path: Path, name: str) -> None:
    with refused(Unreadable):
        titled(tmp_path / name, b"\x7fELF\0\0")


# Markdown

MARKDOWN = """---
title: "The guide"
tags: [a]
---
# Orvel

The *lighthouse* of **Orvel** has a [keeper](https://example.org/x "t").
It is `tall`.

Harbour
-------
1. salted plums
2. herons ![a heron](h.png)

| fish | price |
|------|-------|
| cod  | 3     |

```python
price = 3  # shillings
# not a heading
```

### Winter ###
<div>Ice &amp; <b>snow</b></div>

## Ünd more
Last<br>line &copy; 2020 <!-- hidden -->
"""


def test_markdown_sections_and_words(tmp_path: Path) -> None:
    assert titled(tmp_path / "a.md", MARKDOWN) == [
        ("The guide > Orvel", "The lighthouse of Orvel has a keeper. It is tall."),
        ("The guide > Orvel > Harbour", "salted plums herons a heron"),
        ("The guide > Orvel > Harbour", "fish: cod; price: 3"),
        ("The guide > Orvel > Harbour", "price = 3  # shillings\n# not a heading"),
        ("The guide > Orvel > Harbour > Winter", "Ice & snow"),
        ("The guide > Orvel > Ünd more", "Last line © 2020"),
    ]


def test_flat_keys_of_front_matter_are_metadata() -> None:
    lines = (
        "title: The guide",
        "date: 2025-03-04T10:00:00Z",
        "author: 'Dana Brisk'",
        "draft: true",
        'edition: "2"',
        "year: 1820",
    )
    assert front_matter("\n".join((*lines, "tags: [a, b]", "more:", "  below: x", "note: kept  # not this", "empty:"))) == {
        "title": "The guide",
        "date": "2025-03-04",
        "author": "Dana Brisk",
        "draft": True,
        "edition": "2",
        "year": 1820,
        "note": "kept",
    }


def test_the_first_heading_names_the_document_else_the_file(tmp_path: Path) -> None:
    assert titled(tmp_path / "a.md", "intro\n# Doc\none\n# Other\ntwo") == [
        ("a", "intro"),
        ("Doc", "one"),
        ("Doc > Other", "two"),
    ]


def test_a_large_markdown_file_is_parsed_in_parts_cut_before_headings(tmp_path: Path) -> None:
    fence = "```\n# no heading\n" + "code line\n" * 50 + "```\n"
    text = "# Doc\n" + "".join(f"\n## Part {i}\nWords of part {i}.\n\n{fence}" for i in range(1100))
    assert len(text) > 1 << 19
    found = titled(tmp_path / "a.md", text)
    assert {title for title, _ in found} == {f"Doc > Part {i}" for i in range(1100)}
    assert sum(text.count("# no heading") for _, text in found) == 1100


# HTML

HTML = """<!DOCTYPE html><html><head><title> My
 page </title><meta name=x><style>p{}</style><script>if (a<b) x="</p>";</script></head>
<body><nav><a href=/>Home</a></nav><p>Before.<h1>My page</h1>
<p>Hel<b>lo</b> w&ouml;rld &amp; all.<br>Next</p><img alt=x>
<h2>Prices <small>2020</small></h2><table><tr><td>Cod<td>3</table><svg><text>no</text></svg>
<ul><li>one<li>two</ul><![if x]>kept<!-- gone --><footer>Contact</footer></body></html>"""


def test_html_sections_and_words(tmp_path: Path) -> None:
    assert titled(tmp_path / "a.html", HTML) == [
        ("My page", "Before. Hello wörld & all. Next"),
        ("My page > Prices 2020", "Cod 3 one two kept"),
    ]


def test_html_without_a_title_takes_its_first_heading_else_the_file(tmp_path: Path) -> None:
    assert titled(tmp_path / "a.html", "<p>x<h1>H</h1>y<h1>I</h1>z") == [("a", "x"), ("H", "y"), ("H > I", "z")]


def test_a_title_that_never_ends_does_not_swallow_the_page(tmp_path: Path) -> None:
    found = titled(tmp_path / "a.html", "<h1>Never closed " + "words and words " * 100)
    assert " ".join(text for _, text in found) == ("Never closed " + "words and words " * 100).strip()


def test_html_in_its_declared_encoding(tmp_path: Path) -> None:
    page = '<meta charset="iso-8859-2"><p>žluťoučký kůň'.encode("iso-8859-2")
    assert titled(tmp_path / "a.html", page) == [("a", "žluťoučký kůň")]


@pytest.mark.parametrize("declared", ["utf-16", "rot13", "hex", "zlib", "idna", "punycode", "nonsense", ""])
def test_html_of_an_impossible_declared_encoding_is_read_all_the_same(tmp_path: Path, declared: str) -> None:
    page = f'<meta charset="{declared}"><p>na\u00efve'
    assert titled(tmp_path / "a.html", page) == [("a", "naïve")]
    assert titled(tmp_path / "a.html", page.encode("cp1252")) == [("a", "naïve")]


def test_xhtml_in_its_declared_encoding(tmp_path: Path) -> None:
    page = '<?xml version="1.0" encoding="iso-8859-2"?><html><script src="x"/><body><p>žluťoučký kůň'.encode("iso-8859-2")
    assert titled(tmp_path / "a.xhtml", page) == [("a", "žluťoučký kůň")]


HOSTILE = {
    "attributes": "<a " + "".join(f"x{i} " for i in range(200_000)) + ">word",
    "equal attributes": "<a " + "x " * 700_000 + ">word",
    "open tag": "<p>word<a " + "x " * 700_000,
    "nested": "<div>" * 170_000 + "word",
    "inline": "<b>" * 170_000 + "word",
    "tables": "<table><tr><td>" * 35_000 + "word",
    "less than": "word<p>" + "<" * 350_000,
    "comments": "word" + "<!--" * 350_000,
    "declarations": "word" + "<!" * 350_000,
    "sections": "word" + "<![CDATA[" * 100_000,
    "ends": "word" + "</x" * 350_000,
    "quotes": "word" + '<a "' * 350_000,
    "references": "word " + "&" * 350_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.timeout(120)
def test_hostile_html_is_read_at_once(tmp_path: Path, kind: str) -> None:
    before = time.thread_time()
    assert "word" in titled(tmp_path / "a.html", HOSTILE[kind])[0][1]
    # Half a second of a processor, whatever else it has to do; the parser of the standard library takes minutes.
    assert time.thread_time() - before < 8


def test_a_large_page_is_read_whole_in_pieces(tmp_path: Path) -> None:
    words = [f"Word{i}." if i % 9 else f"word{i}" for i in range(30_000)]
    for markup in ("<p>" + " ".join(words), "<p>".join(words), "<b>" + "</b> <b>".join(words)):
        found = titled(tmp_path / "a.html", markup)
        assert " ".join(text for _, text in found).split() == words


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


TAGS = st.sampled_from(["p", "div", "b", "td", "li", "section", "i", "span", "blockquote", "h2"])
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="<>&"), max_size=20)
MARKUP = st.recursive(
    TEXT, lambda inner: st.builds(lambda t, parts: f"<{t}>{''.join(parts)}</{t}>", TAGS, st.lists(inner, max_size=4))
)


@given(markup=MARKUP.filter(lambda markup: "<h2>" not in markup))
def test_the_words_are_those_beautiful_soup_finds(markup: str) -> None:
    assert squeezed(visible_text(markup)) == squeezed(bs4.BeautifulSoup(markup, "html.parser").get_text())


@given(markup=st.text(st.sampled_from("<>!-[]/&;=\"'? abpCDATAscript\n"), max_size=60))
def test_no_markup_breaks_the_parser(markup: str) -> None:
    visible_text(markup)
