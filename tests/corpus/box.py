"""A place like a user's who has nothing yet, the same for every run of one script, and what runs left in it."""

import os
import re
import shutil
import sys
from pathlib import Path

from tests.corpus.script import Script

POOL = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "512"}
"""TensorFlow's GPU allocator on the CPU, as on a machine without a GPU."""

_FOLDERS = ("cwd", "home", "tmp", "run", "state", "cache", "config", "data")

KEPT_BY_DESIGN = (
    r"run/tfmemtop",  # the folder of sessions, empty once they have ended
    # What the program printed under the live screen, and the session's recording. Without $XDG_STATE_HOME in the home.
    r"(state|home/\.local/state)/tfmemtop(/[^/]*\.(log|jsonl\.gz))?",
    r"home/\.local(/state)?",
    r"cache/tfmemtop(/.*)?",  # the built library
)
"""What a run may leave: the README names each."""

_CHANCE = re.compile(r"tmp[a-z0-9_]{8}|(?<=popen-gw)[0-9]+|(?<=[-_.])[0-9]{2,}|(?<=[-_.])[a-z0-9_]{8}\b")


class Box:
    """The folders of one script. The path is the same for the bare run and the others: some scripts print it."""

    def __init__(self, root: Path, cache: Path) -> None:
        self.path = root / "box"
        self.cache = cache  # where the library for TensorFlow lies, built once for all
        self.recording = root / "recording.jsonl"

    def prepare(self, script: Script) -> None:
        """Begin anew."""
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
        """Remove all of it, of whatever mode."""
        if self.path.exists():
            for folder, _, _ in os.walk(self.path):
                Path(folder).chmod(0o700)
            shutil.rmtree(self.path)

    def environment(self, script: Script) -> dict[str, str]:
        """What the command is started with."""
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
            "CORPUS_INIT": str(os.getpid()),  # in the place of process 1
        }
        if script.tensorflow:
            found |= POOL | {"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "1"}
        for name, value in script.environment.items():
            found.pop(name, None)
            if value is not None:
                found[name] = self.filled(value, script)
        return found

    def command(self, script: Script) -> list[str]:
        """Its words."""
        return [self.filled(word, script) for word in script.command]

    def filled(self, text: str, script: Script) -> str:
        """*text* with the names of places put in."""
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
        """What is there that was not before the run, less what is by design; names that are chance made alike."""
        new = sorted(self._found() - self._before)
        design = re.compile("|".join(f"(?:{pattern})" for pattern in KEPT_BY_DESIGN))
        return sorted(_CHANCE.sub("*", path) for path in new if not design.fullmatch(path))

    def _found(self) -> set[str]:
        return {str(path.relative_to(self.path)) for path in self.path.rglob("*")}
