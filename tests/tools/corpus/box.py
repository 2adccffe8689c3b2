"""Folders like those of a user without any files, the same for every run of one script; and what runs leave in them."""

import os
import re
import shutil
import sys
from pathlib import Path

from tests.tools.corpus.script import Script

TFMEMTOP = (sys.executable, "-I", "-m", "tfmemtop")
"""The installed command without its first Python, which heeds the user's variables as any Python does."""

POOL = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "512"}
"""TensorFlow's GPU allocator, used for the CPU, as for a machine without a GPU."""

_FOLDERS = ("cwd", "home", "tmp", "run", "state", "cache", "config", "data")

KEPT_BY_DESIGN = (
    r"run/tfmemtop",  # the folder of sessions, empty once they have ended
    # The program's output under the live screen, and the session's recording. Without $XDG_STATE_HOME they are in the
    # home folder.
    r"(state|home/\.local/state)/tfmemtop(/[^/]*\.(log|jsonl\.gz))?",
    r"home/\.local(/state)?",
    r"cache/tfmemtop(/.*)?",  # the built library
)
"""The files that a run may leave. The README names each of them."""

_CHANCE = re.compile(r"tmp[a-z0-9_]{8}|(?<=popen-gw)[0-9]+|(?<=[-_.])[0-9]{2,}|(?<=[-_.])[a-z0-9_]{8}\b")


class Box:
    """The folders of one script. The path is the same for the bare run and the others: some scripts print it."""

    def __init__(self, root: Path, cache: Path) -> None:
        self.path = root / "box"
        self.cache = cache  # the folder of the library for TensorFlow, which is built once for all scripts
        self.recording = root / "recording.jsonl"

    def prepare(self, script: Script) -> None:
        """Delete the folders and make new ones, which contain only the files of *script*."""
        self.clear()
        for name in _FOLDERS:
            (self.path / name).mkdir(parents=True, mode=0o700)
        cwd = self.path / script.cwd
        cwd.mkdir(parents=True, exist_ok=True)
        if script.source:
            (cwd / "script.py").write_text(script.source)
        for name, text in script.files.items():
            path = cwd / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)
            if path.read_bytes().startswith((b"#!", b"\x7fELF", b":")):
                path.chmod(0o755)
        self._before = self._found()

    def clear(self) -> None:
        """Remove all of the folders, whatever the modes of their files."""
        if self.path.exists():
            for folder, _, _ in os.walk(self.path):
                Path(folder).chmod(0o700)
            shutil.rmtree(self.path)

    def environment(self, script: Script) -> dict[str, str]:
        """Return the environment with which the command is started."""
        tools = str(Path(sys.executable).parent)
        found: dict[str, str] = {
            "PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "USER": "somebody",
            "HOME": str(self.path / "home"),
            "TMPDIR": str(self.path / "tmp"),
            "XDG_RUNTIME_DIR": str(self.path / "run"),
            "XDG_STATE_HOME": str(self.path / "state"),
            "XDG_CACHE_HOME": str(self.cache if script.tensorflow else self.path / "cache"),
            "XDG_CONFIG_HOME": str(self.path / "config"),
            "XDG_DATA_HOME": str(self.path / "data"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CORPUS_INIT": str(os.getpid()),  # the process that takes the place of process 1
        }
        if script.tensorflow:
            found |= POOL | {"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "1"}
        for name, value in script.environment.items():
            found.pop(name, None)
            if value is not None:
                found[name] = self.filled(value, script)
        return found

    def command(self, script: Script) -> list[str]:
        """Return the words of the command."""
        return [self.filled(word, script) for word in script.command]

    def filled(self, text: str, script: Script) -> str:
        """Return *text* with the real paths in the place of ``{python}``, ``{base}``, ``{box}`` and ``{cwd}``."""
        places = {
            "{python}": sys.executable,
            "{base}": getattr(sys, "_base_executable", sys.executable),
            "{box}": str(self.path),
            "{cwd}": str(self.path / script.cwd),
        }
        for name, place in places.items():
            text = text.replace(name, place)
        return text

    def left(self) -> list[str]:
        """Return the paths that were not there before the run, without those that are left by design.

        Random parts of names are replaced by ``*``, so that two runs can be compared.
        """
        new = sorted(self._found() - self._before)
        design = re.compile("|".join(f"(?:{pattern})" for pattern in KEPT_BY_DESIGN))
        return sorted(_CHANCE.sub("*", path) for path in new if not design.fullmatch(path))

    def _found(self) -> set[str]:
        return {str(path.relative_to(self.path)) for path in self.path.rglob("*")}
