"""Chat templates in the shape of families that think, as short as they can be, and what each must come to.

Written for these tests; the behaviour is the families', the words are not.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """``off`` and ``on`` are what follows the last turn when the model is not to think, and when its thought is to begin;
    ``before`` and ``before_on`` what must stand before the first turn. ``effort``: it takes one."""

    template: str
    off: str
    on: str | None
    before: str | None = None
    before_on: str | None = None
    effort: bool = False


_TURNS = "{% for m in messages %}[{{ m.role }}]{{ m.content }}[end]\n{% endfor %}"
_REPLY = "{% if add_generation_prompt %}[assistant]\n"
_EMPTY = "<think>\n\n</think>\n\n"
FAMILIES = {
    "qwen3": Family(
        _TURNS
        + _REPLY
        + "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}",
        _EMPTY,
        "<think>\n",
    ),
    "glm": Family(
        "[gMASK]{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}"
        "{% if m.role == 'user' and enable_thinking is defined and not enable_thinking and '/nothink' not in m.content %}"
        "/nothink{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% if enable_thinking is defined and not enable_thinking %}"
        "{{ '\\n<think></think>' }}"
        "{% endif %}{% endif %}",
        "/nothink<|assistant|>\n<think></think>",
        "<|assistant|><think>\n",
    ),
    "smollm3": Family(
        "{% if enable_thinking is not defined %}{% set enable_thinking = true %}{% endif %}"
        "[system]Today: {{ strftime_now('%d %B %Y') }}. Mode: {{ '/think' if enable_thinking else '/no_think' }}."
        "{% if enable_thinking %} Put thoughts between <think> and </think>.{% endif %}[end]\n"
        + _TURNS
        + _REPLY
        + "{% if not enable_thinking %}<think>\n\n</think>\n{% endif %}{% endif %}",
        "<think>\n\n</think>\n",
        "<think>\n",
        before="Mode: /no_think.",
        before_on="Mode: /think.",
    ),
    "hunyuan": Family(
        "{% for m in messages %}[{{ m.role }}]{{ m.content.split('<answer>')[-1].split('</answer>')[0] }}[end]\n"
        "{% endfor %}"
        + _REPLY
        + "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n{% endif %}{% endif %}",
        "<think>\n\n</think>\n<answer>\n",
        "<think>\n",
    ),
    "granite-3.3": Family(
        "[system]You help.{% if thinking %} Think in <think></think>, then answer in <response></response>."
        "{% endif %}[end]\n" + _TURNS + _REPLY + "{% endif %}",
        "",
        "<think>\n",
        before="You help.[end]",
        before_on="Think in <think>",
    ),
    "granite-3.2": Family(
        "[system]You help.{% if thinking %} Begin with 'Here is my thought process:', then 'Here is my response:'."
        "{% endif %}[end]\n" + _TURNS + _REPLY + "{% endif %}",
        "",
        "Here is my thought process:\n",
    ),
    "deepseek-v3.1": Family(
        "{% if not thinking is defined %}{% set thinking = false %}{% endif %}"
        "{% for m in messages %}{% if m.role == 'user' %}<|User|>{{ m.content }}{% else %}<|Assistant|></think>"
        "{{ m.content }}<|end|>"
        "{% endif %}{% endfor %}{% if add_generation_prompt %}<|Assistant|>{% if thinking %}<think>"
        "{% else %}</think>{% endif %}{% endif %}",
        "<|Assistant|></think>",
        "<|Assistant|><think>",
    ),
    "r1-distil": Family(
        "{% for m in messages %}{% if m.role == 'assistant' and '</think>' in m.content %}"
        "{{ '<|Assistant|>' + m.content.split('</think>')[-1] }}{% else %}<|{{ m.role }}|>{{ m.content }}"
        "{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|Assistant|><think>\\n' }}{% endif %}",
        "<|Assistant|>" + _EMPTY,
        "<|Assistant|><think>\n",
    ),
    "r1-first": Family(  # the reply opens the block by itself, and nothing tells it not to
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content.split('</think>')[-1] }}{% endfor %}"
        "{% if add_generation_prompt %}<|Assistant|>{% endif %}",
        "<|Assistant|>" + _EMPTY,
        "<|Assistant|><think>\n",
    ),
    "qwq": Family(_TURNS + "{% if add_generation_prompt %}{{- '[assistant]\\n<think>\\n' }}{% endif %}", _EMPTY, "<think>\n"),
    "seed-oss": Family(
        "{% if not thinking_budget is defined %}{% set thinking_budget = -1 %}{% endif %}"
        "{% if thinking_budget == 0 %}[system]No thoughts.[end]\n{% elif thinking_budget > 0 %}[system]"
        "{{ thinking_budget }}[end]\n"
        "{% endif %}" + _TURNS + _REPLY + "<seed:think>\n{% if thinking_budget == 0 %}"
        "<seed:cot_budget_reflect>The budget is 0.</seed:cot_budget_reflect>\n{% endif %}{% endif %}",
        "<seed:think>\n<seed:cot_budget_reflect>The budget is 0.</seed:cot_budget_reflect>\n</seed:think>",
        "<seed:think>\n",
        before="No thoughts.",
        before_on="[system]77[end]",
    ),
    "gpt-oss": Family(
        "{% if reasoning_effort is not defined %}{% set reasoning_effort = 'medium' %}{% endif %}"
        "<|start|>system<|message|>Date: {{ strftime_now('%Y-%m-%d') }}\nReasoning: {{ reasoning_effort }}<|end|>"
        "{% for m in messages %}{% if m.role == 'assistant' %}<|start|>assistant<|channel|>final<|message|>"
        "{{ m.content }}<|end|>"
        "{% else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant{% endif %}",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
        "<|end|><|start|>assistant<|channel|>analysis<|message|>",
        before="Date: 2026-02-03\nReasoning: low",
        before_on="Date: 2026-02-03\nReasoning: medium",
        effort=True,
    ),
    "magistral": Family(
        "{% if messages[0].role == 'system' %}[SYSTEM_PROMPT]{{ messages[0].content }}[/SYSTEM_PROMPT]"
        "{% set rest = messages[1:] %}"
        "{% else %}[SYSTEM_PROMPT]First draft your thoughts: [THINK]like this[/THINK]Then answer.[/SYSTEM_PROMPT]"
        "{% set rest = messages %}{% endif %}"
        "{% for m in rest %}{% if m.role == 'user' %}[INST]{{ m.content }}[/INST]{% else %}{{ m.content }}</s>"
        "{% endif %}{% endfor %}",
        "[/INST]",
        "[/INST][THINK]",
        before="[SYSTEM_PROMPT][/SYSTEM_PROMPT]",
        before_on="like this",
    ),
    "phi-4-reasoning": Family(
        "<|im_start|>system<|im_sep|>Structure: <think> {Thought section} </think> {Solution section}.<|im_end|>"
        "{% for m in messages %}<|im_start|>{{ m.role }}<|im_sep|>{{ m.content }}<|im_end|>{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant<|im_sep|>{% endif %}",
        "<|im_end|><|im_start|>assistant<|im_sep|>" + _EMPTY,
        "<|im_end|><|im_start|>assistant<|im_sep|><think>\n",
    ),
    "gemma4": Family(
        "<bos>{% if enable_thinking is defined and enable_thinking %}<|turn>system\n<|think|><turn|>\n{% endif %}"
        "{% for m in messages %}<|turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
        "{{ m.content }}<turn|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|turn>model\n"
        "{% if not enable_thinking | default(false) %}<|channel>thought\n<channel|>{% endif %}"
        "{% endif %}",
        "<|channel>thought\n<channel|>",
        "<|turn>model\n<|channel>thought\n",
        before_on="<|think|>",
    ),
    "kimi": Family(_TURNS + "{% if add_generation_prompt %}[assistant]◁think▷{% endif %}", "◁think▷◁/think▷", "◁think▷"),
    "exaone-4": Family(
        _TURNS
        + _REPLY
        + "{% if enable_thinking is defined and enable_thinking is true %}<think>\n{% else %}<think>\n\n</think>\n\n"
        "{% endif %}{% endif %}",
        _EMPTY,
        "<think>\n",
    ),
    "exaone-deep": Family(_TURNS + _REPLY + "<thought>\n{% endif %}", "<thought>\n\n</thought>\n\n", "<thought>\n"),
    "mistral-4": Family(  # an effort that may be none, and no other is allowed
        "{% set effort = reasoning_effort if reasoning_effort is defined else 'none' %}"
        "{% if effort not in ['none', 'high'] %}{{ raise_exception('no such effort') }}{% endif %}"
        "[MODEL]{{ effort }}[/MODEL]{% for m in messages %}{% if m.role == 'user' %}[INST]{{ m.content }}[/INST]"
        "{% else %}"
        "{{ m.content.split('[/THINK]')[-1] }}</s>{% endif %}{% endfor %}",
        "[/INST]",
        "[/INST][THINK]",
        before="[MODEL]none",
        before_on="[MODEL]high",
        effort=True,
    ),
    "cohere": Family(
        "{% set thinks = reasoning if reasoning is defined else true %}{% for m in messages %}<|{{ m.role }}|>"
        "{% if m.role == 'assistant' %}<|START_RESPONSE|>{{ m.content }}<|END_RESPONSE|>{% else %}{{ m.content }}"
        "{% endif %}"
        "{% endfor %}{% if add_generation_prompt %}<|CHATBOT|>"
        "{% if not thinks %}<|START_THINKING|><|END_THINKING|>{% endif %}{% endif %}",
        "<|START_THINKING|><|END_THINKING|><|START_RESPONSE|>",
        "<|CHATBOT|><|START_THINKING|>",
    ),
    "nemotron": Family(  # a word in the system turn
        "{% set ns = namespace(on=true) %}{% for m in messages %}{% if '/no_think' in m.content %}"
        "{% set ns.on = false %}{% endif %}"
        "{% endfor %}{% for m in messages %}{% if m.role != 'system' %}[{{ m.role }}]{{ m.content }}[end]\n"
        "{% endif %}{% endfor %}" + _REPLY + "{% if ns.on %}<think>\n{% else %}<think></think>{% endif %}{% endif %}",
        "<think></think>",
        "<think>\n",
    ),
    "command-r7b": Family(  # thoughts before it calls tools, none before an answer
        "{% for m in messages %}<|{{ m.role }}|>"
        "{% if m.tool_plan %}<|START_THINKING|>{{ m.tool_plan }}<|END_THINKING|>{% endif %}"
        "<|START_RESPONSE|>{{ m.content }}<|END_RESPONSE|>{% endfor %}{% if add_generation_prompt %}<|CHATBOT|>{% endif %}",
        "<|CHATBOT|><|START_RESPONSE|>",
        "<|CHATBOT|><|START_THINKING|>",
    ),
    "kimi-k3": Family(  # tags that macros put together
        "{% macro tag(name) %}<|open|>{{ name }}<|sep|>{% endmacro %}{% if thinking is undefined %}{% set thinking = true %}"
        "{% endif %}{% for m in messages %}{{ tag(m.role) }}{{ m.content }}<|close|>{% endfor %}"
        "{% if add_generation_prompt %}{{ tag('think' if thinking else 'response') }}{% endif %}",
        "<|open|>response<|sep|>",
        "<|open|>think<|sep|>",
    ),
    "apriel": Family(  # the thought is asked for, and begins with words
        "[system]Reason, then: [BEGIN FINAL RESPONSE] ... [END FINAL RESPONSE].[end]\n" + _TURNS + _REPLY + "{% endif %}",
        "[assistant]\n[BEGIN FINAL RESPONSE]\n",
        "[assistant]\nHere are my reasoning steps:\n",
    ),
    "dated-tools": Family(  # tells the date where there are tools
        "{% if tools %}{{ strftime_now('%Y') }}{% endif %}" + _TURNS + _REPLY + "<think>\n{% endif %}", _EMPTY, "<think>\n"
    ),
    "plain": Family(_TURNS + _REPLY + "{% endif %}", "[end]\n[assistant]\n", None),
    "strict": Family(
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system turn') }}{% endif %}{% for m in messages %}"
        "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns must alternate') }}{% endif %}"
        "[{{ m.role }}]{{ m.content }}[end]\n{% endfor %}" + _REPLY + "<think>\n{% endif %}",
        _EMPTY,
        "<think>\n",
    ),
}
