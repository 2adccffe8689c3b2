"""The environment variables that a script reads by name: they are a part of how it was run."""

import os
import re
from collections.abc import Mapping, Sequence

from tfmemtop.settings import names_a_secret

_READ = re.compile(r"""(?:environ(?:\.get)?\s*[\[(]|getenv\s*\()\s*["'](\w{1,60})["']""")
_MOST = 1 << 20  # bytes of the script


def named_variables(argv: Sequence[str], cwd: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return those variables of *environment* that the text of the script in *argv* names, but no secrets."""
    script = next((word for word in argv if word.endswith(".py")), None)
    if script is None:
        return {}
    try:
        with open(os.path.join(cwd, script), encoding="utf-8", errors="replace") as file:  # noqa: PTH118, PTH123
            names = _READ.findall(file.read(_MOST))
    except OSError:
        return {}  # the script itself will say so
    return {name: environment[name] for name in names if name in environment and not names_a_secret(name)}
