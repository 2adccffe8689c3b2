"""The short form joins scripts that need no process of their own. It runs once without tfmemtop and once under it."""

import shlex
from collections.abc import Sequence

from tests.tools.corpus.script import Script, py, sh


def together(scripts: Sequence[Script]) -> list[Script]:
    """Return *scripts* with those joined that can be: with TensorFlow in one process, the others in one shell."""
    joined = [script for script in scripts if _joins(script)]
    trained = [script for script in scripts if _trains(script)]
    rest = [script for script in scripts if script not in joined and script not in trained]
    return [
        *rest,
        *([_in_one_shell(joined)] if len(joined) > 1 else joined),
        *([_in_one_process(trained)] if len(trained) > 1 else trained),
    ]


def _joins(script: Script) -> bool:
    """Return whether *script* can be joined: it starts in the usual way, and leaves nothing that affects others."""
    own = (script.prepare, script.environment, script.filters, script.differs, script.needs, script.tensorflow)
    streams = (script.stdin, script.stdout, script.stderr)
    of_its_start = script.name.startswith(
        ("signals-as", "signals-killed", "signals-whole", "process-daemon", "process-prints-later")
    )
    return not any(own) and streams == ("null", "pipe", "pipe") and script.cwd == "cwd" and not of_its_start


def _trains(script: Script) -> bool:
    plain = script.tensorflow and script.source and not (script.files or script.environment or script.differs)
    return bool(plain and (script.stdin, script.stdout, script.stderr) == ("null", "pipe", "pipe"))


def _in_one_shell(scripts: Sequence[Script]) -> Script:
    lines = ["start=$PWD"]
    files: dict[str, str | bytes] = {}
    for script in scripts:
        told = f"echo '== {script.name}'"
        lines.append(f'cd "$start/{script.name}"; {told}; {told} >&2; {shlex.join(script.command)}; echo "= $?"')
        own = {**script.files, **({"script.py": script.source} if script.source else {})}
        files |= {f"{script.name}/{name}": text for name, text in (own or {"empty": ""}).items()}
    return sh("together", f"{len(scripts)} scripts, one after the other", "\n".join(lines), files=files)


def _in_one_process(scripts: Sequence[Script]) -> Script:
    parts = [f"print('== {script.name}', flush=True)\n{script.source}" for script in scripts]
    filters = tuple(dict.fromkeys(name for script in scripts for name in script.filters))
    return py("together-tf", f"{len(scripts)} in one process", "\n".join(parts), tensorflow=True, filters=filters)
