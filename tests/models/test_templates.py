"""Templates of strangers: each fault a sentence, none runs for ever, none reads files."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from gnothi.errors import InvalidInput
from gnothi.models.templates import Template
from tests.messages import refused

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
    "template",
    [
        "{% for one in messages %}",
        "{{ raise_exception('only tools') }}",
        "{{ messages[9].content.no.such }}",
        "{{ 1 / 0 }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(999999999) %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.__init__.__globals__ }}",
        "{% include '/etc/passwd' %}",
        "{{ messages[0].content }}",
        "{% for one in messages %}<{{ one.role }}>{% endfor %}",
    ],
)
def test_a_fault_is_a_sentence(template: str) -> None:
    with refused(InvalidInput):
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
    with refused(InvalidInput):
        template([{"role": "user", "content": "Who?"}] * 4)
