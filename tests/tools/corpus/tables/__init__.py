"""The tables, one for each subject. To add a script, add a row."""

from dataclasses import replace

from tests.tools.corpus.script import Aspect, Script
from tests.tools.corpus.tables import (
    commands,
    environments,
    exits,
    finalizers,
    folders,
    interpreter,
    modules,
    processes,
    pythons,
    signals,
    stdio,
    tensorflow,
    threads,
    tools,
    trainings,
)

_BY_DESIGN: dict[str, dict[Aspect, str]] = {
    "python-option-S": {"stdout": "-S leaves the hook's folder on sys.path"},
    **{
        f"signals-{name}-ignored": {"stdout": "whether SIGPIPE and SIGXFSZ were ignored before Python cannot be known"}
        for name in ("several", "real-time")
    },
    "site-exits": {"stderr": "a traceback through sitecustomize shows our frames"},
}
"""The differences by design of scripts that a table makes by rule."""

_ALL: tuple[Script, ...] = (
    *signals.SCRIPTS,
    *exits.SCRIPTS,
    *finalizers.SCRIPTS,
    *stdio.SCRIPTS,
    *processes.SCRIPTS,
    *pythons.SCRIPTS,
    *modules.SCRIPTS,
    *interpreter.SCRIPTS,
    *tools.SCRIPTS,
    *threads.SCRIPTS,
    *environments.SCRIPTS,
    *folders.SCRIPTS,
    *commands.SCRIPTS,
    *tensorflow.SCRIPTS,
    *trainings.SCRIPTS,
)

SCRIPTS = tuple(replace(script, differs=_BY_DESIGN.get(script.name, script.differs)) for script in _ALL)

assert len({script.name for script in SCRIPTS}) == len(SCRIPTS), "two scripts have one name"
