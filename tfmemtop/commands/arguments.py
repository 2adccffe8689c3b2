"""The command line, read and checked."""

import argparse
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, cast

from tfmemtop.charset import takes_utf8
from tfmemtop.options import Refusal, UiOptions
from tfmemtop.settings import AllocatorName, Growth, Settings

Subcommand = Literal["live", "demo", "record", "attach", "replay", "compare", "why", "fit", "doctor", "once"]

_USAGE = """\
tfmemtop [OPTIONS] -- COMMAND…       run COMMAND and watch it
       tfmemtop                             watch only: the GPUs and every process on them
       tfmemtop demo                        watch a built-in Keras training
       tfmemtop record -o FILE -- COMMAND…  no screen: what happens goes to FILE, a summary to stderr
       tfmemtop attach [RUN]                the screen again, onto a run that goes on
       tfmemtop replay FILE                 the same screens from a recording
       tfmemtop why FILE                    what a recording says of its run's memory, in words
       tfmemtop compare A [B] [--json]      two recordings, or the last two runs of one, side by side
       tfmemtop fit [--seconds N] -- COMMAND…
                                            find the smallest memory limit that works, by trying
       tfmemtop doctor [--json] [-- COMMAND…]
                                            what a run would find here, and what is missing
       tfmemtop --once [--json]             one reading of devices and processes"""

_EPILOG = """\
SIZE is a number with K, M, G or T (KiB-based: 4G, 3500M), or a share of the memory such as 50%.
Without a GPU the memory limit and the allocator act on TensorFlow's memory pool for the CPU.

exit code: the script's own; 128+n if signal n ended it; 2 for a command line that cannot be
followed; 126 or 127 for a command that cannot be started or is not there.
Of fit: 0 if a limit was found, 1 if not, 130 if it was interrupted.
Of doctor: 0 if nothing is missing, else 1."""

_SUBCOMMANDS = ("demo", "record", "attach", "replay", "why", "compare", "fit", "doctor")

# Words each takes: at least, at most.
_TAKES = {"attach": (0, 1), "replay": (1, 1), "why": (1, 1), "compare": (1, 2)}

# What each option needs to make sense; those not named here suit every screen.
_LAUNCH = ("live", "demo", "record")
_LAUNCH_OR_FIT = (*_LAUNCH, "fit")
_SCREEN = ("live", "demo", "attach", "replay")
_SUITS: dict[str, tuple[str, ...]] = {
    "growth": _LAUNCH_OR_FIT,
    "memory_limit": _LAUNCH,
    "allocator": _LAUNCH_OR_FIT,
    "gpus": _LAUNCH_OR_FIT,
    "cpu_pool": _LAUNCH,
    "interval": _LAUNCH_OR_FIT,
    "no_probe": _LAUNCH_OR_FIT,
    "record": ("live", "demo"),
    "output": ("record",),
    "readonly": _SCREEN,
    "ascii": _SCREEN,
    "json": ("once", "compare", "fit", "doctor"),
    "seconds": ("fit",),
    "steps": ("fit",),
    "smallest": ("fit",),
    "largest": ("fit",),
    "tries": ("fit",),
}
_FLAGS = {
    "output": "-o",
    "memory_limit": "--memory-limit",
    "cpu_pool": "--cpu-pool",
    "no_probe": "--no-probe",
    "smallest": "--from",
    "largest": "--to",
}


@dataclass(frozen=True)
class Arguments:
    """What the user asked for; sizes are still text, since ``50%`` needs the machine to mean bytes.

    ``command`` is the script's command line, empty when only watching; ``growth`` what was said of
    it, ``script`` included; ``interval_s`` the hook's pace; ``probe`` whether to look into the pools;
    ``record`` where the events go; ``targets`` what to attach to, to replay, to explain or to compare.
    For fit: ``seconds`` or ``steps`` to get past, limits from ``smallest`` to ``largest``, ``tries`` at most.
    """

    subcommand: Subcommand
    settings: Settings
    command: tuple[str, ...] = ()
    growth: str | None = None
    memory_limit: str | None = None
    cpu_pool: str | None = None
    interval_s: float = 0.1
    probe: bool = True
    record: Path | None = None
    targets: tuple[str, ...] = ()
    seconds: float | None = None
    steps: int | None = None
    smallest: str | None = None
    largest: str | None = None
    tries: int = 8
    json: bool = False
    ascii: bool = False
    readonly: bool = False

    @property
    def target(self) -> str | None:
        """The only word there is for a subcommand that takes one."""
        return self.targets[0] if self.targets else None

    def ui_options(self, environment: dict[str, str]) -> UiOptions:
        """How the screen shall be, in the user's own *environment*."""
        ascii_only = self.ascii or not takes_utf8(environment)
        return UiOptions(ascii=ascii_only, readonly=self.readonly, color=not environment.get("NO_COLOR"))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refusal(f"{message}; see tfmemtop --help")


def parser() -> argparse.ArgumentParser:
    """The options, and the help they make."""
    parser = _Parser(
        prog="tfmemtop",
        usage=_USAGE,
        description="See and steer the GPU memory of a TensorFlow program while it runs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    run = parser.add_argument_group("for the run")
    run.add_argument("--growth", choices=("on", "off", "script"), help="memory growth; script: as it asks (default)")
    run.add_argument("--memory-limit", metavar="SIZE", help="the most TensorFlow's pool may take, of each GPU")
    run.add_argument("--allocator", choices=("bfc", "cuda_malloc_async", "script"), help="TensorFlow's allocator")
    run.add_argument("--gpus", metavar="LIST", help="GPUs the script may see, as 0,2; none hides them all")
    run.add_argument("--cpu-pool", metavar="SIZE", help="put the CPU on a BFC pool of this size")
    run.add_argument("--interval", metavar="SECONDS", help="time between two readings, 0.02 to 60 (default 0.1)")
    run.add_argument("--no-probe", action="store_true", help="build and load nothing that looks into the pools")
    run.add_argument("--record", metavar="FILE", help="also write what happens to FILE")
    run.add_argument("-o", "--output", metavar="FILE", help="with record: the file to write")
    fit = parser.add_argument_group("for fit")
    fit.add_argument("--seconds", metavar="N", help="what the script is to get past, 1 to 86400 (default 30)")
    fit.add_argument("--steps", metavar="N", help="the same in calls of its busiest tf.function, or steps of Keras")
    fit.add_argument("--from", dest="smallest", metavar="SIZE", help="the smallest limit to try")
    fit.add_argument("--to", dest="largest", metavar="SIZE", help="the largest (default: the first try has no limit)")
    fit.add_argument("--tries", metavar="N", help="how often to start the script, 1 to 50 (default 8)")
    screen = parser.add_argument_group("for the screen")
    screen.add_argument("--readonly", action="store_true", help="look only: no signals, no relaunch, no typing")
    screen.add_argument(
        "--ascii", action="store_true", help="draw with ASCII characters only, as in locales that are not UTF-8"
    )
    other = parser.add_argument_group("other")
    other.add_argument("--once", action="store_true", help="print one reading and exit; needs no terminal")
    other.add_argument("--json", action="store_true", help="with --once, compare, fit or doctor: print it as JSON")
    other.add_argument("-V", "--version", action="store_true", help="print the version and exit")
    other.add_argument("-h", "--help", action="store_true", help="print this and exit")
    return parser


def parse(argv: Sequence[str]) -> Arguments | Literal["help", "version"]:
    """Read the words after ``tfmemtop``.

    Raises:
        Refusal: they make no sense; the message says why.
    """
    split = argv.index("--") if "--" in argv else len(argv)
    head, command = list(argv[:split]), tuple(argv[split + 1 :])
    has_dashes = split < len(argv)
    if not has_dashes:
        _notice_a_bare_command(head)
    found, rest = parser().parse_known_intermixed_args(head)
    if rest:
        raise Refusal(f"unknown option {rest[0]}; see tfmemtop --help")
    if found.help:
        return "help"
    if found.version:
        return "version"
    subcommand, words = _subcommand(found)
    if (command or has_dashes) and subcommand not in ("live", "record", "fit", "doctor"):
        name = "--once" if subcommand == "once" else subcommand
        raise Refusal(f"{name} takes no command after --")
    if has_dashes and not command:
        raise Refusal("there is no command after --; for example: tfmemtop -- python train.py")
    if subcommand == "record" and not command:
        raise Refusal("record needs a command; for example: tfmemtop record -o run.jsonl -- python train.py")
    if subcommand == "record" and found.output is None:
        raise Refusal("record needs a file; for example: tfmemtop record -o run.jsonl -- python train.py")
    if subcommand == "fit" and not command:
        raise Refusal("fit needs a command; for example: tfmemtop fit -- python train.py")
    if command and not command[0]:
        raise Refusal("the command after -- is empty")
    _check_options_suit(found, subcommand, bool(command))
    return Arguments(
        subcommand=subcommand,
        command=command,
        settings=_settings(found),
        growth=found.growth,
        memory_limit=found.memory_limit,
        cpu_pool=found.cpu_pool,
        interval_s=_interval(found.interval),
        probe=not found.no_probe,
        record=_path(found.output if subcommand == "record" else found.record),
        targets=tuple(words),
        seconds=_seconds(found),
        steps=_whole("--steps", found.steps, 1_000_000_000),
        smallest=found.smallest,
        largest=found.largest,
        tries=_whole("--tries", found.tries, 50) or 8,
        json=found.json,
        ascii=found.ascii,
        readonly=found.readonly,
    )


def _notice_a_bare_command(head: list[str]) -> None:
    """Refuse ``tfmemtop python train.py``, whatever options python and the script may have."""
    flags = {flag: action.nargs is None for action in parser()._actions for flag in action.option_strings}
    place = 0
    while place < len(head) and head[place].startswith("-"):
        flag = head[place].partition("=")[0]
        if flag not in flags:
            return
        place += 2 if flags[flag] and "=" not in head[place] else 1
    if place < len(head) and head[place] not in _SUBCOMMANDS:
        raise Refusal("put -- before the command: " + shlex.join(["tfmemtop", *head[:place], "--", *head[place:]]))


def _subcommand(found: argparse.Namespace) -> tuple[Subcommand, list[str]]:
    words: list[str] = found.words
    if found.once:
        if words:
            raise Refusal(f"--once stands alone, without {words[0]}")
        return "once", []
    if not words:
        return "live", []
    name, words = words[0], words[1:]
    if name not in _SUBCOMMANDS:
        raise Refusal(f"{name!r} before -- is none of {', '.join(_SUBCOMMANDS)}")
    takes = _TAKES.get(name, (0, 0))
    if len(words) < takes[0]:
        more = " before.jsonl after.jsonl" if name == "compare" else " run.jsonl"
        raise Refusal(f"{name} needs a file; for example: tfmemtop {name}{more}")
    if len(words) > takes[1]:
        odd = words[takes[1]]
        hint = ": put -- before the command" if name in ("record", "fit", "doctor") else ""
        raise Refusal(f"{name} cannot make sense of {odd!r}{hint}")
    return cast(Subcommand, name), words


def _check_options_suit(found: argparse.Namespace, subcommand: Subcommand, has_command: bool) -> None:
    for name, suits in _SUITS.items():
        value = getattr(found, name)
        if value is None or value is False:
            continue
        flag = _FLAGS.get(name, f"--{name}")
        if subcommand not in suits:
            if subcommand == "live":
                raise Refusal(f"{flag} belongs to {'--once' if name == 'json' else suits[0]}")
            shown = "--once" if subcommand == "once" else subcommand
            raise Refusal(f"{flag} has no meaning with {shown}")
        # Watching can be recorded and paced, but there is no script for a setting to act on.
        if subcommand == "live" and not has_command and set(suits) >= set(_LAUNCH) and name != "interval":
            raise Refusal(f"{flag} needs a command to act on; for example: tfmemtop {flag} … -- python train.py")


def _settings(found: argparse.Namespace) -> Settings:
    def chosen(value: str | None) -> Any:
        return None if value in (None, "script") else value

    return Settings(
        growth=cast("Growth | None", chosen(found.growth)),
        allocator=cast("AllocatorName | None", chosen(found.allocator)),
        gpus=_gpus(found.gpus),
    )


def _gpus(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    if text.strip().lower() in ("", "none"):
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise Refusal(f"--gpus {text}: give numbers as nvidia-smi shows them, such as 0,2, or none")
    gpus = tuple(map(int, parts))
    if len(set(gpus)) < len(gpus):
        raise Refusal(f"--gpus {text}: a GPU is named twice")
    return gpus


def _interval(text: str | None) -> float:
    if text is None:
        return 0.1
    seconds = _number(text)
    if not 0.02 <= seconds <= 60:
        raise Refusal(f"--interval {text}: give seconds from 0.02 to 60")
    return seconds


def _seconds(found: argparse.Namespace) -> float | None:
    """What fit has to get past, unless that is a number of steps."""
    if found.seconds is None:
        return 30.0 if found.steps is None else None
    if found.steps is not None:
        raise Refusal("give --seconds or --steps, not both")
    seconds = _number(found.seconds)
    if not 1 <= seconds <= 86_400:
        raise Refusal(f"--seconds {found.seconds}: give seconds from 1 to 86400")
    return seconds


def _whole(flag: str, text: str | None, most: int) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 12 and 1 <= int(text) <= most):
        raise Refusal(f"{flag} {text}: give a whole number from 1 to {most}")
    return int(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _path(text: str | None) -> Path | None:
    if text is None:
        return None
    if not text:
        raise Refusal("the file to record to has an empty name")
    return Path(text)
