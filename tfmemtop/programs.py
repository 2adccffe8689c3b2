"""The part of a command line that identifies the program. This loads fast, because the first picture needs it."""

from collections.abc import Sequence

_PYTHON = r"(python|pypy)[0-9.]*(-dbg|d|t|w)?(\.exe)?"
_MODULE_OR_CODE = r"(?s)-[bBdEiIOPqRsSuvx]*([mc])(.*)"
_KERNEL = "ipykernel_launcher"
_WITH_A_VALUE = ("-W", "-X", "--check-hash-based-pycs")
"""Options of Python whose value is the next word."""


def program(command: Sequence[str]) -> list[str]:
    """Return *command* without the folders of its program, and without the Python that runs a script.

    ``/opt/venv/bin/python3 -u /home/ada/train.py 8`` becomes ``train.py 8``, and ``python -m pkg`` becomes ``-m pkg``.
    A Jupyter kernel is identified by its connection file: ``ipykernel_launcher kernel-81fe``. A Python that runs no
    script keeps its own name.
    """
    if not command:
        return []
    import re

    first, *rest = command
    name = _last(first)
    if not (name.startswith(("python", "pypy")) and re.fullmatch(_PYTHON, name)):
        return [name, *rest]
    at = 0
    while at < len(rest):
        word = rest[at]
        if found := re.fullmatch(_MODULE_OR_CODE, word):
            kind, joined = found.groups()
            words = [*([joined] if joined else []), *rest[at + 1 :]]
            if kind == "m" and words[:1] == [_KERNEL]:
                return [_KERNEL, *(_last(word).removesuffix(".json") for word in words if word.endswith(".json"))]
            return [f"-{kind}", *words]
        if word == "-":
            return [name, *rest]
        if not word.startswith("-"):
            return [_last(word), *rest[at + 1 :]]
        at += 2 if word in _WITH_A_VALUE else 1
    return [name, *rest]


def _last(path: str) -> str:
    """Return the last part of *path*, or *path* itself if it has no parts."""
    return path.rstrip("/").rpartition("/")[2] or path
