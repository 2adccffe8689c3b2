"""The tables, one for each subject. To add a script, add a row."""

from dataclasses import replace

from tests.tools.corpus.script import Aspect
from tests.tools.corpus.tables import commands, ends, environments, processes, pythons, stdio, tensorflow

_BY_DESIGN: dict[str, dict[Aspect, str]] = {
    "python-option-S": {"stdout": "-S leaves the hook's folder on sys.path"},
    **{
        f"signals-{name}-ignored": {"stdout": "whether SIGPIPE and SIGXFSZ were ignored before Python cannot be known"}
        for name in ("several", "real-time")
    },
}
"""The differences by design of scripts that a table makes by rule."""

_TABLES = (ends, stdio, processes, pythons, environments, commands, tensorflow)

SCRIPTS = tuple(
    replace(script, differs=_BY_DESIGN.get(script.name, script.differs))
    for table in _TABLES
    for script in table.SCRIPTS
)

assert len({script.name for script in SCRIPTS}) == len(SCRIPTS), "two scripts have one name"
