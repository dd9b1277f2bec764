"""Templates of strangers: each fault a sentence, none runs for ever, none reads files."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from gnothi.errors import InvalidInput
from gnothi.models.templates import Template

OPENED = "{% for one in messages %}<{{ one.role }}>"
FINE = OPENED + "{{ one.content }}{% endfor %}"


class Given:
    def __init__(self, template: str) -> None:
        self.chat_template = template

    def apply_chat_template(self, messages: list[dict[str, str]], **options: Any) -> str:
        from transformers.utils.chat_template_utils import render_jinja_template

        assert options.pop("tokenize") is False
        rendered: Any = render_jinja_template([messages], chat_template=self.chat_template, **options)
        return str(rendered[0][0])


def test_as_written() -> None:
    before = sys.gettrace()
    assert Template(Given(FINE))([{"role": "user", "content": "Who?"}]) == "<user>Who?"
    assert sys.gettrace() is before


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{% for one in messages %}", "TemplateSyntaxError"),
        ("{{ raise_exception('only tools') }}", "only tools"),
        ("{{ messages[9].content.no.such }}", "UndefinedError"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "it runs on after 1,000,000 steps"),
        ("{% for a in range(999999999) %}{% endfor %}", "OverflowError"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "RecursionError"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "SecurityError"),
        ("{{ messages.__init__.__globals__ }}", "SecurityError"),
        ("{% include '/etc/passwd' %}", "TypeError"),
        ("{{ messages[0].content }}", r"it leaves out what is said \('Ann'\)"),
        ("{% for one in messages %}<{{ one.role }}>{% endfor %}", r"it leaves out what is said \('Who\?'\)"),
    ],
)
def test_a_fault_is_a_sentence(template: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=f"the model's chat template fails: .*{said}.*in turn. Mend chat_template"):
        Template(Given(template))


@pytest.mark.parametrize(
    "template",
    [
        # As those of LLaVA, SmolVLM and others, which would write nothing of a plain text.
        OPENED + "{% for part in one.content if part.type == 'text' %}{{ part.text }}{% endfor %}{% endfor %}",
        OPENED + "{% for part in one.content | selectattr('type', 'equalto', 'text') %}{{ part.text }}{% endfor %}{% endfor %}",
        OPENED + "{{ one.content[0]['text'] }}{% endfor %}",
        OPENED + "{{ one.content[0].text.strip() }}{% endfor %}",
    ],
)
def test_one_that_takes_what_is_said_in_parts(template: str) -> None:
    said = Template(Given(template))([{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ann"}])
    assert said == "<user>Who?<assistant>Ann"


def test_what_fails_later() -> None:
    template = Template(Given("{% if messages|length > 3 %}{{ raise_exception('too many') }}{% endif %}" + FINE))
    with pytest.raises(InvalidInput, match="too many"):
        template([{"role": "user", "content": "Who?"}] * 4)
