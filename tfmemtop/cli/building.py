"""Builds what a search predicts with, before its first try.

Otherwise they are built during the first tries, and the probe comes too late to record these.
"""

import time
from pathlib import Path

import msgspec

from tfmemtop.cli.checks.interpreter import Interpreter, Start, ask, resolve
from tfmemtop.cli.saying import note, say
from tfmemtop.engine.process.launch import Launch
from tfmemtop.events import Unbuilt
from tfmemtop.findings import probe_text as words
from tfmemtop.probe.build import PROBE, REPLAY, Product, build


def build_for(launch: Launch) -> None:
    """Build the probe and the replay for the TensorFlow of the launch's command, with a line for each on stderr.

    Nothing is built, and nothing printed, if they exist already, if the launch leaves the probe out, or if the
    command's Python cannot be found, because it is started by a shell script, for example.
    """
    python = _python_of(launch) if launch.probe else None
    if python is None or python.folder is None or python.tensorflow is None:
        return
    tensorflow = Path(python.folder), python.tensorflow
    if _build(tensorflow, PROBE, words.PROBE):
        _build(tensorflow, REPLAY, words.REPLAY)


def _build(tensorflow: tuple[Path, str], product: Product, title: str) -> bool:
    """Return whether the *product*, whose name is *title*, is there now. If not, print what the search lacks."""
    begun: float | None = None

    def begin() -> None:
        nonlocal begun
        begun = time.monotonic()
        note(f"tfmemtop: {words.building_text(title, tensorflow[1])} … ", end="")

    built = build(*tensorflow, product, begin)
    if begun is not None:
        note(words.built_text(time.monotonic() - begun, done=built.unbuilt is None))
    if built.unbuilt is not None:
        say(words.no_prediction(msgspec.convert(built.unbuilt, Unbuilt), title))
    return built.unbuilt is None


def _python_of(launch: Launch) -> Interpreter | None:
    cwd = Path(launch.cwd)
    start = resolve(launch.argv, launch.environment, cwd)
    found = ask(start, cwd) if isinstance(start, Start) else start
    return found if isinstance(found, Interpreter) else None
