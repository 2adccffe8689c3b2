"""``%memtop``: shows what tfmemtop has recorded of the notebook's own session, as text and as a picture."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tfmemtop import boot

UNWATCHED = (
    "tfmemtop does not watch this kernel. Add one that it watches: tfmemtop kernel install. "
    'Then change the notebook\'s kernel to "Python (tfmemtop)".'
)
NO_PICTURE = "matplotlib is missing. Install it in this environment to see a graph of the session here."

CURVES = (("total", "process total"), ("pool", "pool"), ("in_use", "in use"))
"""The curves of the picture, the highest first: the key in tfmemtop's answer, and the name."""

LIMIT = "limit"
OUT_OF_MEMORY = "out of memory"
TIME = "seconds since the kernel's start"


def not_asked(reason: object) -> str:
    """Return the error for a session that could not be read; *reason* is empty if it is not known."""
    return f"tfmemtop gave no answer: {reason or 'it printed nothing'}"


_SOCKET = "TFMEMTOP_SOCKET"
_PATIENCE_S = 120.0
_MIB = 2**20
_OURS = ("TFMEMTOP_", "PYTHONPATH")


def memtop(line: str) -> None:
    """Print the account of this session's memory and its findings, and draw the memory if matplotlib is installed.

    With *line* ``text`` it does not draw.
    """
    told = _ask()
    sys.stdout.write("\n".join(told["text"] or [told["error"]]) + "\n")
    if line.strip() != "text" and any(size is not None for size in told["in_use"]):
        _draw(told)


def _ask() -> Any:
    socket = os.environ.get(_SOCKET)
    if not socket:
        return _nothing(UNWATCHED)
    session = Path(socket).parent.name
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    try:
        done = subprocess.run(
            boot.command("tfmemtop.cli.why", session),
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            check=False,
        )
        return json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return _nothing(not_asked(error))
    except ValueError:
        last = done.stderr.strip().splitlines()[-1:]
        return _nothing(not_asked(last[0] if last else ""))


def _nothing(error: str) -> dict[str, Any]:
    return {"text": [], "in_use": [], "error": error}


def _draw(told: Any) -> None:
    try:
        from IPython.display import Image, display
        from matplotlib.figure import Figure
    except ImportError:
        sys.stdout.write(NO_PICTURE + "\n")
        return
    # Not pyplot: it would load the user's backend.
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    axes = figure.add_subplot()
    for name, label in CURVES:
        at, sizes = _known(told[name], told["width_s"])
        if at:
            axes.plot(at, sizes, label=label, drawstyle="steps-post", linewidth=1.2)
    highest = max(size for size in told["in_use"] if size is not None)
    if told["limit"] and told["limit"] < 4 * highest:
        axes.axhline(told["limit"] / _MIB, label=LIMIT, linestyle="--", linewidth=1, color="gray")
    for place, second in enumerate(told["ran_out_s"]):
        axes.axvline(second, label="" if place else OUT_OF_MEMORY, linestyle=":", color="red")
    axes.set_xlabel(TIME)
    axes.set_ylabel("MiB")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", fontsize="small")
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    display(Image(picture.getvalue()))


def _known(sizes: "list[int | None]", width_s: float) -> "tuple[list[float], list[float]]":
    pairs = [(place * width_s, size / _MIB) for place, size in enumerate(sizes) if size is not None]
    return [at for at, _ in pairs], [size for _, size in pairs]
