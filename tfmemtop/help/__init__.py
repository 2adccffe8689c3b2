"""The pages of the manual: Markdown files in this folder. The command ``help`` and the screen's ``?`` show them."""

from pathlib import Path

_FOLDER = Path(__file__).parent

_NAMES = (
    "use",
    "outside",
    "notebooks",
    "settings",
    "frameworks",
    "config",
    "keys",
    "words",
    "findings",
    "holders",
    "out-of-memory",
    "leak",
    "batch",
    "fit",
    "limits",
    "whatif",
    "compare",
    "many-machines",
    "report",
    "slurm",
    "kubernetes",
    "cluster",
    "alerts",
    "metrics",
    "recordings",
    "formats",
    "how-it-works",
    "pools",
    "xla",
    "trust",
    "costs",
    "claims",
    "evidence",
    "exit-codes",
)


def topics() -> tuple[str, ...]:
    """Return the names of the pages, in the order in which to read them."""
    return _NAMES


def topic(name: str) -> str:
    """Return the page *name* as Markdown.

    Raises:
        KeyError: there is no such page.
    """
    if name not in _NAMES:
        raise KeyError(name)
    text = (_FOLDER / f"{name}.md").read_text("utf-8")
    if name == "metrics":
        from tfmemtop.findings.judgement import kinds  # imported only here, because it takes a while to load
        from tfmemtop.findings.names import key_of

        text = text.replace("{keys}", ", ".join(f"`{key}`" for key in sorted(map(key_of, kinds())) if key != "noticed"))
    return text


def summary(name: str) -> str:
    """Return what the page *name* is about: the first line after its title, as plain text.

    Raises:
        KeyError: there is no such page.
    """
    return next(line for line in topic(name).splitlines()[1:] if line).replace("`", "")
