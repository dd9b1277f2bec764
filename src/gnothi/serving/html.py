"""A small page, for what a browser opens: all text escaped, nothing loaded, no script."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from starlette.responses import HTMLResponse

_STYLE = (
    ":root{color-scheme:light dark}body{font:1rem/1.6 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem}"
    "p{white-space:pre-wrap;overflow-wrap:anywhere}"
)
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def page(title: str, text: str, status: int = 200) -> HTMLResponse:
    content = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1><p>{escape(text)}</p></main></body></html>"
    )
    return HTMLResponse(content, status, {"content-security-policy": POLICY, "cache-control": "private, no-store"})
