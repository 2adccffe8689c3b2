"""The file of a page: plain HTML that says what matters without scripts, the data, and the script that draws it."""

import base64
import gzip
import hashlib
import re
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import Any

import msgspec

from tfmemtop.reports.shared.data import PageData, PageSession
from tfmemtop.reports.shared.picture import picture
from tfmemtop.safe import safe

_LEVEL = 9
_CODE = re.compile("`([^`]+)`")


def html(page: PageData) -> str:
    """Return *page* as one HTML file, which loads nothing from anywhere."""
    style, script = _built("page.css"), _built("page.js")
    packed = gzip.compress(msgspec.json.encode(_harmless(msgspec.to_builtins(page))), _LEVEL, mtime=0)
    title = " · ".join(f"{one.name}: {one.runs[-1].title}" if one.runs else one.name for one in page.sessions)
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(title)}</title>",
            '<link rel="icon" href="data:,">',  # else a browser asks the page's server for one
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            '<main id="page">',
            *(line for session in page.sessions for line in _session(session)),
            "</main>",
            f'<script type="application/octet-stream" id="data">{base64.b64encode(packed).decode()}</script>',
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _harmless(value: Any) -> Any:
    """Return *value* with all texts in it made safe: no character in them deceives the reader or cannot be encoded."""
    if isinstance(value, str):
        return "\n".join(map(safe, value.split("\n")))
    if isinstance(value, dict):
        return {safe(name): _harmless(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return value if value and isinstance(value[0], int) else [_harmless(part) for part in value]
    return value


def _built(name: str) -> str:
    """Return a file that the build of ``page/`` made."""
    return (files("tfmemtop") / "page" / "built" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _text(text: str) -> str:
    """Return *text* for HTML: on one line, without characters that deceive the reader."""
    return escape(safe(text))


def _sentence(text: str) -> str:
    """Return a sentence of tfmemtop for HTML: what stands between backticks is code."""
    return _CODE.sub(r"<code>\1</code>", _text(text))


def _session(session: PageSession) -> Iterator[str]:
    """Yield what the page says of a session without scripts: the last run's verdict, what helps, a picture, facts."""
    place = f" ({_text(session.placement)})" if session.placement else ""
    yield f"<h1>{_text(session.name)}{place}</h1>"
    yield from (f"<p>{_text(note)}</p>" for note in session.notes)
    for run in session.runs[-1:]:
        yield f'<p class="verdict {run.verdict.severity}">{_sentence(run.verdict.text)}</p>'
        yield from (f"<p>{_sentence(text)}</p>" for text in (run.verdict.evidence, run.heading) if text)
        if run.verdict.remedies:
            yield "<h2>What helps</h2>"
            yield from ("<ul>", *(f"<li>{_sentence(remedy)}</li>" for remedy in run.verdict.remedies), "</ul>")
        for lines in filter(None, (run.verdict.command, run.verdict.code)):
            yield "<pre>" + "\n".join(map(_text, lines.split("\n"))) + "</pre>"
        yield '<dl class="facts">'
        yield from (f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in run.facts)
        yield "</dl>"
        yield from (f"<p>{_sentence(finding.text)}</p>" for finding in run.findings)
    yield f"<figure>{picture([session])}</figure>"
