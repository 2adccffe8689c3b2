"""Runs scripts on a GPU under ``tfmemtop record``, and reads what was recorded."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfmemtop import events
from tfmemtop.events import recording

PROGRAM = [sys.executable, "-m", "tfmemtop"]
MIB = 1 << 20


def kept(folder: Path) -> Path:
    """Return the folder that ``TFMEMTOP_KEEP_RECORDINGS`` names, and *folder* if it names none."""
    named = os.environ.get("TFMEMTOP_KEEP_RECORDINGS")
    return Path(named) if named else folder


def record(
    path: Path,
    options: Sequence[str],
    *command: str,
    variables: Mapping[str, str] | None = None,
    timeout_s: float = 400,
) -> tuple["subprocess.CompletedProcess[str]", list[events.Event]]:
    """Run Python with *command* under ``tfmemtop record -o PATH``. Return how it ended, and what was recorded."""
    done = subprocess.run(
        [*PROGRAM, "record", "-o", str(path), *options, "--", sys.executable, *command],
        env={**os.environ, **(variables or {})}, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    return done, list(recording.read(path).events())


def held(said: dict[str, Any], stream: list[events.Event], settle_s: float = 0.2) -> list[events.Event]:
    """Return the events of the time in which the script held still: it *said* from when until when."""
    session = stream[0]
    assert isinstance(session, events.Session)
    began, ended = said["since"] - session.started + settle_s, said["until"] - session.started - 0.2
    return [event for event in stream if began < event.t < ended]
