"""Watch a built-in Keras training, which takes about a minute.

usage: tfmemtop demo [OPTIONS]
example: tfmemtop demo --growth on

It trains on the GPU if there is one. Otherwise it trains on the CPU, and TensorFlow's GPU allocator (BFC) manages
the CPU's memory.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import NO_RECORD, RECORD, ScreenArguments, WatchedRunArguments
from tfmemtop.cli.launch import ask_machine, file_for, make_launch, resolve, script_terminal_size
from tfmemtop.cli.live import show
from tfmemtop.cli.output import say
from tfmemtop.engine.process.launch import start
from tfmemtop.settings import Settings
from tfmemtop.units import GIB

_SCRIPT = Path(__file__).parents[1] / "demo" / "train.py"
_POOL = 2 * GIB  # bytes: about three times what the training needs, so that a smaller limit can be tried


class DemoArguments(ScreenArguments, WatchedRunArguments):
    """The options of any run. The command is the demo's own."""

    record: Path | None = RECORD
    no_record: bool = NO_RECORD


ARGUMENTS = DemoArguments


def run(arguments: DemoArguments) -> int:
    """Start the demo, show the screen, and return the exit code with which the user left it.

    Raises:
        Refusal: TensorFlow is not installed, or there is no screen to show it on.
    """
    if find_spec("tensorflow") is None:
        raise Refusal("the demo needs TensorFlow: pip install 'tfmemtop[demo]'")
    size = script_terminal_size()
    arguments.record, remarks = file_for(arguments.record)
    launch = make_launch(arguments, [sys.executable, str(_SCRIPT)], _settings(arguments), *size)
    code = show(lambda: start(launch), arguments, starts=True)
    for line in remarks:
        say(line)
    return code


def _settings(arguments: DemoArguments) -> Settings:
    machine = ask_machine()
    settings = resolve(arguments, machine)
    on_gpu = bool(machine.uuids) and settings.gpus != ()
    if on_gpu:
        # By default TensorFlow would take the whole GPU at once, and there would be little to watch.
        return msgspec.structs.replace(settings, growth="on") if arguments.growth is None else settings
    if settings.cpu_pool is None and settings.memory_limit is None:
        settings = msgspec.structs.replace(settings, cpu_pool=min(_POOL, machine.host_memory or _POOL))
    return settings
