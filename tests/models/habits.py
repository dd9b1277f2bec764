"""Habits of servers that speak OpenAI's protocol, one table: what each does, and what becomes of it. Every habit is one that a
server was seen to have; names say which way it differs from the plain one."""

from __future__ import annotations

from tests.models.habit_server import (
    LOGPROB,
    Always,
    Habit,
    begins_blank,
    begun,
    beside,
    billed,
    certain_if_greedy,
    cut_in_thought,
    extras,
    first_choice,
    inside,
    instead,
    is_trial,
    last_is_none,
    listed,
    more_than_it_shows,
    raw_inside,
    refuse,
    said_with,
    tempered,
    thinks_unless,
    usage,
)
from tests.models.openai_api import BadRequest

PLAIN_DETAILS = usage(billed)
OFF = "switched off by "
STUCK = "cannot be switched off"

HABITS: tuple[Habit, ...] = (
    Habit("plain"),
    Habit("continues begun replies", continues=True),
    # thoughts: where
    Habit("thinks in tags", Always, "tags", thinking=STUCK, logprobs=True),
    Habit("thinks, the prompt opens the tag", Always, "closing tag", thinking=STUCK),
    Habit("thinks in brackets", Always, "brackets", thinking=STUCK),
    Habit("thinks in channels", Always, "channels", thinking=STUCK),
    Habit("thinks in marks of its family", Always, "seed", thinking=STUCK),
    Habit("thinks in reasoning_content", Always, "reasoning_content", thinking="reasoning_content"),
    Habit("thinks in reasoning", Always, "reasoning", thinking="reasoning"),
    Habit("thinks in reasoning_details", Always, "reasoning_details", thinking="reasoning_details"),
    Habit("thinks in two fields", Always, "two fields", thinking="reasoning"),
    Habit("thinks in parts of parts", Always, "parts of parts", thinking="parts of the content"),
    Habit("thinks in parts", Always, "parts", thinking="parts of the content"),
    Habit("thinks out of sight, and bills it", Always, "nowhere", mend=usage(billed), thinking="the bill alone"),
    Habit("thinks out of sight, billed beside", Always, "nowhere", mend=usage(beside), thinking="the bill alone"),
    Habit("thinks out of sight", Always, "nowhere", mend=usage(more_than_it_shows), thinking="the bill alone"),
    Habit("thinks at times, not in the trial", lambda body: not is_trial(body), "tags", thinking="was not switched off"),
    Habit(
        "thinks in a field, an empty line before the answer",
        Always,
        "reasoning_content",
        mend=said_with(lambda text: f"\n\n{text}"),
        thinking="reasoning_content",
    ),
    Habit("thinks in marks that nobody knows", Always, "unknown marks", thinking=STUCK),
    Habit("thinks twice", Always, "two blocks", thinking=STUCK),
    Habit("thinks in thoughts", Always, "nested", thinking=STUCK),
    Habit(
        "a thought cut before its closing mark",
        Always,
        "closing tag",
        mend=cut_in_thought,
        thinking="the text before a closing mark",
        error="before any answer: all went into thoughts",
    ),
    Habit(
        "answers only where it is told not to think",
        thinks_unless(enable_thinking=False),
        refuse=refuse(
            "parameter.enable_thinking must be set to false for non-streaming calls",
            "messages",
            when=lambda body: body.get("enable_thinking") is not False,
        ),
        thinking=OFF + "enable_thinking=false",
    ),
    Habit("begins with an empty line", mend=begins_blank),
    # special tokens
    Habit("the token that ends a turn", mend=said_with(lambda text: f"{text}<|im_end|>")),
    Habit("two that end it", mend=said_with(lambda text: f"{text} </s>\n<|endoftext|>")),
    Habit("a turn begun", mend=said_with(lambda text: f"{text}<|eot_id|><|start_header_id|>assistant<|end_header_id|>")),
    Habit("a further turn", mend=said_with(lambda text: f"{text}<end_of_turn>\n<start_of_turn>user\nAnd Otto?<end_of_turn>")),
    Habit("the tokens before a turn", mend=said_with(lambda text: f"<|im_start|>assistant\n{text}<|im_end|>")),
    Habit(
        "thinks, and tokens about it",
        Always,
        "tags",
        mend=said_with(lambda text: f"<|im_start|>assistant\n{text}<|im_end|>"),
        thinking=STUCK,
    ),
    # thoughts: log-probabilities
    Habit("numbers of thought and answer", Always, "tags", covers=True, thinking=STUCK),
    Habit("numbers of a thought in a field", Always, "reasoning_content", covers=True, thinking="reasoning_content"),
    Habit("numbers of a thought in parts", Always, "parts", covers=True, thinking="parts of the content"),
    # thoughts: off and on
    Habit("effort none", thinks_unless(reasoning_effort="none"), thinking=OFF + "reasoning_effort=none"),
    Habit("template's enable_thinking", thinks_unless(chat_template_kwargs={"enable_thinking": False}), thinking=OFF + "chat_"),
    Habit("template's thinking", thinks_unless(chat_template_kwargs={"thinking": False}), thinking=OFF + "chat_template"),
    Habit("thinking disabled", thinks_unless(thinking={"type": "disabled"}), thinking=OFF + "thinking=type=disabled"),
    Habit("reasoning disabled", thinks_unless(reasoning={"enabled": False}), thinking=OFF + "reasoning="),
    Habit(
        "refuses effort, takes the template's",
        thinks_unless(chat_template_kwargs={"enable_thinking": False}),
        "reasoning_content",
        refuse=refuse("Extra inputs are not permitted", "reasoning_effort", status=422),
        thinking=OFF + "chat_template_kwargs",
    ),
    Habit(
        "no numbers while it thinks",
        thinks_unless(reasoning_effort="none"),
        "nowhere",
        refuse=refuse(
            "logprobs are not supported with reasoning models.", "logprobs", when=thinks_unless(reasoning_effort="none")
        ),
        mend=lambda reply, body: reply if body.get("reasoning_effort") == "none" else PLAIN_DETAILS(reply, body),
        thinking=OFF + "reasoning_effort=none",
    ),
    Habit(
        "thinks when told to",
        lambda body: (body.get("chat_template_kwargs") or {}).get("enable_thinking") is True,
        "reasoning_content",
        settings={"thinking": "on"},
        thinking="on by chat_template_kwargs",
    ),
    Habit(
        "thinks with an effort",
        lambda body: body.get("reasoning_effort") == "high",
        "reasoning",
        settings={"thinking": "high"},
        thinking="high by reasoning_effort=high",
    ),
    Habit(
        "a thought and no answer",
        Always,
        "reasoning_content",
        mend=first_choice(lambda choice: choice["message"].update(content=None)),
        thinking="reasoning_content",
        error="holds a thought and no answer",
    ),
    Habit(
        "a thought without end",
        Always,
        "reasoning",
        mend=first_choice(lambda choice: (choice["message"].update(content=None), choice.update(finish_reason="length"))),
        thinking="reasoning",
        error="before any answer: all went into thoughts",
    ),
    Habit(
        "nothing at the limit",
        mend=first_choice(lambda choice: (choice["message"].update(content=""), choice.update(finish_reason="length"))),
        error="before any answer",
    ),
    # refusals: named
    Habit(
        "names the parameter",
        refuse=refuse("Unsupported parameter.", "top_k", param="top_k"),
        without=frozenset({"top_k"}),
    ),
    Habit(
        "403 for logprobs",
        refuse=refuse("You are not allowed to request logprobs from this model", "logprobs", status=403),
        without=frozenset({"logprobs"}),
        logprobs=False,
    ),
    Habit(
        "Logprobs with a capital",
        refuse=refuse("Logprobs is not enabled for models/x", "logprobs"),
        without=frozenset({"logprobs"}),
        logprobs=False,
    ),
    Habit(
        "top_logprobs alone",
        refuse=refuse("top_logprobs must be between 1 and 8", "top_logprobs", param="top_logprobs"),
        without=frozenset({"top_logprobs"}),
    ),
    Habit(
        "names in camels",
        refuse=refuse("Unknown field `topK`, `topP`", "top_k"),
        without=frozenset({"top_k"}),
    ),
    Habit(
        "deprecated temperature",
        refuse=refuse("`temperature` is deprecated for this model.", "temperature"),
        without=frozenset({"temperature"}),
    ),
    Habit(
        "not both temperature and top_p",
        refuse=refuse(
            "`temperature` and `top_p` cannot both be specified for this model.",
            "top_p",
            when=lambda body: "temperature" in body,
        ),
        without=frozenset({"top_p"}),
    ),
    Habit(
        "a positive temperature",
        refuse=refuse("`temperature` must be strictly positive", "temperature", when=lambda body: body["temperature"] == 0),
        without=frozenset({"temperature=0"}),
    ),
    Habit("n at most 1", refuse=refuse("n must be at most 1", "n"), without=frozenset({"n"})),
    Habit("n quoted", refuse=refuse("'n' : number must be at most 1", "n"), without=frozenset({"n"})),
    Habit("one choice", refuse=refuse("Only one completion choice is allowed", "n"), without=frozenset({"n"})),
    Habit("ignores n", mend=lambda reply, _: {**reply, "choices": reply["choices"][:1]}, without=frozenset({"n"})),
    Habit(
        "the other name of the seed",
        refuse=refuse("", "seed", status=422, body=lambda found: {"detail": extras(found)}),
        without=frozenset({"seed"}),
    ),
    Habit(
        "422, several in a list",
        refuse=refuse("", "top_k", "seed", "random_seed", status=422, body=lambda found: {"detail": extras(found)}),
        without=frozenset({"top_k", "seed"}),
    ),
    Habit(
        "422, deep inside",
        refuse=refuse(
            "", "seed", "random_seed", "top_k", status=422, body=lambda found: {"message": {"detail": extras(found[:1])}}
        ),
        without=frozenset({"top_k", "seed"}),
    ),
    Habit("another server's words", refuse=refuse("", "top_k", body=raw_inside), without=frozenset({"top_k"})),
    Habit("a list of errors", refuse=refuse("", "seed", "top_k", body=listed), without=frozenset({"seed", "top_k"})),
    Habit(
        "200 with an error",
        mend=inside({"message": "top_k is not supported", "code": 400}, "top_k"),
        without=frozenset({"top_k"}),
    ),
    Habit(
        "did you mean",
        refuse=refuse("property 'top_k' is unsupported, did you mean 'top_p'?", "top_k"),
        without=frozenset({"top_k"}),
    ),
    Habit(
        "use another instead",
        refuse=refuse("'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "max_tokens"),
        without=frozenset({"max_tokens"}),
    ),
    Habit(
        "lists what it takes",
        refuse=refuse("Unsupported field top_k. Supported parameters: temperature, top_p, seed, stop, n", "top_k"),
        without=frozenset({"top_k"}),
    ),
    Habit(
        "404 for parameters",
        refuse=refuse("No endpoints found that can handle the requested parameters.", "top_k", status=404),
        without=frozenset({"top_k"}),
    ),
    Habit(
        "501",
        refuse=refuse("logprobs: not implemented", "logprobs", status=501),
        without=frozenset({"logprobs"}),
        logprobs=False,
    ),
    Habit(
        "breaks at top_logprobs",
        refuse=refuse("Internal Server Error", "top_logprobs", status=500),
        without=frozenset({"logprobs"}),
        logprobs=False,
    ),
    Habit("stop sequences", refuse=refuse("Stop sequences are not supported", "stop"), without=frozenset({"stop"})),
    # refusals: unnamed
    Habit("bad request, for top_k", refuse=refuse("Bad Request", "top_k"), without=frozenset({"top_k"})),
    Habit("bad request, for stop", refuse=refuse("invalid request body", "stop"), without=frozenset({"stop"})),
    Habit("bad request, for n", refuse=refuse("Bad Request", "n"), without=frozenset({"n"})),
    Habit("bad request, for max_tokens", refuse=refuse("Bad Request", "max_tokens"), without=frozenset({"max_tokens"})),
    Habit(
        "bad request, for two",
        refuse=refuse("Bad Request", "top_k", "seed", "random_seed"),
        without=frozenset({"top_k", "seed"}),
    ),
    Habit(
        "numbers in streams alone",
        refuse=refuse("logprobs is only supported when streaming", "logprobs"),
        without=frozenset({"logprobs"}),
        logprobs=False,
    ),
    # begun replies
    Habit("no trailing assistant", refuse=begun("The conversation must end with a user message.")),
    Habit("no prefill", refuse=begun("Assistant message prefill is not supported with this model")),
    Habit("last role", refuse=begun("Expected last role User or Tool for serving but got assistant", 422)),
    Habit("bad request, for a begun reply", refuse=begun("Bad Request")),
    Habit(
        "forbids what tells it to go on",
        refuse=refuse("", "continue_final_message", status=422, body=lambda found: {"detail": extras(found)}),
        continues=True,
    ),
    # numbers
    Habit("null", numbers=lambda _, count: [None] * count, logprobs=False, without=frozenset({"logprobs"})),
    Habit("NaN", numbers=lambda _, count: [float("nan")] * count, logprobs=False, without=frozenset({"logprobs"})),
    Habit("text", numbers=lambda _, count: ["-0.1"] * count, logprobs=False, without=frozenset({"logprobs"})),
    Habit("positive", numbers=lambda _, count: [0.97] * count, logprobs=False, without=frozenset({"logprobs"})),
    Habit("nothing but 0", numbers=lambda _, count: [0.0] * count, logprobs=False, without=frozenset({"logprobs"})),
    Habit("0 for a token that is certain", numbers=lambda body, count: [0.0 if "colour" in str(body) else LOGPROB] * count),
    Habit("null after the trial", numbers=lambda body, n: [LOGPROB if is_trial(body) else None] * n, logprobs=False),
    Habit("one null", numbers=last_is_none, logprobs=False),
    Habit("minus infinity", numbers=lambda _, count: [float("-inf")] * count),
    Habit("-9999", numbers=lambda _, count: [-9999.0] * count),
    Habit("taken after the temperature", numbers=tempered),
    Habit("greedy is certain", numbers=certain_if_greedy),
    Habit(
        "no numbers after the trial",
        mend=first_choice(lambda choice: choice.update(logprobs=None)),
        logprobs=False,
    ),
    # bills and ends
    Habit("no bill", mend=lambda reply, _: {key: value for key, value in reply.items() if key != "usage"}),
    Habit("a bill of nothing", mend=usage(lambda *_: None)),
    Habit(
        "a filter at the end", mend=first_choice(lambda one: one.update(finish_reason="content_filter")), error="content filter"
    ),
    Habit(
        "calls a tool",
        mend=first_choice(lambda one: (one.update(finish_reason="tool_calls"), one["message"].update(content=None))),
        error="a tool call",
    ),
    Habit("SAFETY", mend=first_choice(lambda choice: choice.update(finish_reason="SAFETY")), error="content filter"),
    Habit(
        "a filter in place of choices",
        mend=instead(
            lambda _: {"choices": [], "prompt_filter_results": [{"content_filter_results": {"hate": {"filtered": True}}}]}
        ),
        error="content filter",
    ),
    Habit(
        "400 of a filter",
        refuse=refuse(
            "",
            "messages",
            body={"error": {"message": "The response was filtered", "code": "content_filter", "param": "prompt"}},
            when=lambda body: not is_trial(body) and "colour" not in str(body),
        ),
        error="content filter",
    ),
    Habit("counts nothing", mend=usage(lambda counted, _: dict.fromkeys(counted, 0))),
    Habit(
        "calls a tool, and says that it stopped",
        mend=first_choice(lambda one: one["message"].update(content=None, tool_calls=[{"function": {"name": "search"}}])),
        error="a tool call",
    ),
    Habit(
        "Google's words for a filter",
        mend=first_choice(lambda one: (one.update(finish_reason="content_filter: RECITATION"), one["message"].clear())),
        error="content filter",
    ),
    Habit(
        "too long, in words of its own",
        refuse=refuse(
            "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 512 `max_new_tokens`",
            "max_tokens",
            status=422,
            when=lambda body: not is_trial(body) and "colour" not in str(body) and "twelve" not in str(body),
        ),
        error="must be <= 4096",
    ),
    # lists of models
    Habit("no list of models for this key", models=BadRequest("Missing scopes: api.model.read.", status=401)),
    Habit("a list of models that breaks", models=BadRequest("No database", status=500)),
    # other interfaces
    Habit("Responses", mend=instead(lambda _: {"object": "response", "output": []}), error="form that is not OpenAI's"),
    Habit("Messages", mend=instead(lambda _: {"type": "message", "content": [{"text": "Ann"}]}), error="form that is not"),
    Habit("Ollama's own", mend=instead(lambda _: {"message": {"content": "Ann"}, "done": True}), error="form that is not"),
    Habit("a list", mend=instead(lambda _: [{"generated_text": "Ann"}]), error="form that is not OpenAI's"),
    Habit("a page", mend=instead(lambda _: b"<!doctype html><html>"), error="form that is not OpenAI's"),
    Habit("a stream", mend=instead(lambda _: b'data: {"choices": []}\n\ndata: [DONE]'), error="Gnothi asks for whole replies"),
    Habit("null alone", mend=instead(lambda _: None), error="form that is not OpenAI's"),
)
