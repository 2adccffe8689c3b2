"""The file of a page: plain HTML that says what matters without scripts, the data, and the script that draws it."""

import base64
import gzip
import hashlib
from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files

import msgspec

from tfmemtop.reports.shared.data import PageData, PageRun
from tfmemtop.safe import safe

_LEVEL = 9


def html(page: PageData) -> str:
    """Return *page* as one HTML file, which loads nothing from anywhere."""
    style, script = _built("page.css"), _built("page.js")
    packed = base64.b64encode(gzip.compress(msgspec.json.encode(page), _LEVEL, mtime=0)).decode()
    title = _text(" · ".join(f"{one.name}: {one.runs[-1].title}" if one.runs else one.name for one in page.sessions))
    policy = f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; base-uri 'none'"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            '<main id="page">',
            *(line for session in page.sessions for line in _session(session.name, session.runs[-1:])),
            "</main>",
            f'<script type="application/octet-stream" id="data">{packed}</script>',
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _built(name: str) -> str:
    """Return a file that the build of ``page/`` made."""
    return (files("tfmemtop") / "page" / "built" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _text(text: str) -> str:
    """Return *text* for HTML: on one line, without characters that deceive the reader."""
    return escape(safe(text))


def _session(name: str, runs: Iterable[PageRun]) -> Iterator[str]:
    yield f"<h1>{_text(name)}</h1>"
    for run in runs:
        yield f'<p class="heading">{_text(run.heading)}</p>'
        yield f'<p class="verdict {run.verdict.severity}">{_text(run.verdict.text)}</p>'
        yield f"<p>{_text(run.verdict.evidence)}</p>"
        yield "<ul>"
        yield from (f"<li>{_text(remedy)}</li>" for remedy in run.verdict.remedies)
        yield "</ul>"
        for lines in filter(None, (run.verdict.command, run.verdict.code)):
            yield "<pre>" + "\n".join(map(_text, lines.split("\n"))) + "</pre>"
        yield f"<p>{_text(run.settings)}</p>"
        yield "<table>"
        yield from (f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in run.facts)
        yield "</table>"
