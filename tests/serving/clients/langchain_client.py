"""LangChain's ChatOpenAI against a server, in both of its modes: python langchain_client.py URL QUESTION."""

from __future__ import annotations

import importlib
import json
import sys

url, question = sys.argv[1:]
ChatOpenAI = importlib.import_module("langchain_openai").ChatOpenAI
found = {}
for mode, responses in (("chat", False), ("responses", True)):
    model = ChatOpenAI(model="gnothi/seakr", base_url=f"{url}/v1", api_key="none", use_responses_api=responses, max_retries=0)
    whole = model.invoke([("user", question)])
    pieces = list(model.stream(question))
    merged = pieces[0]
    for piece in pieces[1:]:
        merged += piece
    found[mode] = {"whole": whole.text, "streamed": merged.text, "blocks": [block["type"] for block in whole.content_blocks]}
sys.stdout.write(json.dumps(found))
