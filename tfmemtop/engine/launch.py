"""Starting an engine, and what is said between it and the one that starts it."""

import json
import os
import subprocess

import msgspec

from tfmemtop import boot
from tfmemtop.settings import Settings


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine is started with; an empty *argv* only watches.

    Texts from the user's system (``argv``, ``cwd``, ``environment``, ``record``) are as :func:`os.fsdecode` gives
    them: what is not UTF-8 stands in them as surrogates. ``ignored`` and ``blocked`` are numbers of signals, for the
    script to inherit.
    """

    argv: list[str]
    cwd: str
    environment: dict[str, str]  # the user's own, pristine
    settings: Settings = Settings()
    interval_s: float = 0.1  # the hook's pace
    record: str | None = None  # path of a recording to write
    probe: bool = True  # look into the pools
    columns: int = 80
    rows: int = 24
    ignored: list[int] = []
    blocked: list[int] = []

    def encode(self) -> bytes:
        """As JSON. Not by msgspec, which refuses surrogates."""
        return json.dumps(msgspec.to_builtins(self)).encode()

    @classmethod
    def decode(cls, text: bytes) -> "Launch":
        """The launch from its JSON.

        Raises:
            ValueError: *text* is no launch.
        """
        return msgspec.convert(json.loads(text), cls)


class Launched(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's answer: where to reach it, or why it could not start, with a shell's exit code.

    It comes twice: before the script is started, and once it is (``started``).
    """

    id: str = ""
    socket: str = ""
    output_path: str | None = None
    started: bool = False
    error: str | None = None
    exit_code: int | None = None


def start(launch: Launch) -> Launched:
    """Start an engine, in a session of its own and in this process's working folder; it starts the script.

    Errors, of the engine's own start too, come as ``Launched.error`` with an exit code. Then no script runs, unless
    the error says otherwise.
    """
    # What is said of the start has a descriptor of its own: anything may be printed on stdout.
    answers, told = os.pipe()
    os.set_inheritable(told, True)
    try:
        engine = subprocess.Popen(
            boot.command("tfmemtop.engine.__main__", str(told)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            # What the user's shell opened for the script, as in <(…), passes through the engine to it.
            close_fds=False,
        )
    except OSError as error:
        os.close(answers)
        return Launched(error=f"the engine cannot be started: {error}", exit_code=1)
    finally:
        os.close(told)
    # It goes on by itself: whoever starts it is not to wait for it, and not to be warned about that.
    engine.returncode = 0
    assert engine.stdin and engine.stderr
    with engine.stderr as complaints, os.fdopen(answers, "rb") as lines:
        try:
            with engine.stdin as asked:
                asked.write(launch.encode())
        except OSError:
            pass  # it has died; what it said follows
        answer = Launched()
        for line in lines:
            answer = msgspec.json.decode(line, type=Launched)
            if answer.started or answer.error is not None:
                return answer
        last = complaints.read().decode(errors="replace").strip().splitlines()[-1:] or ["it ended"]
    why = f"the engine cannot be started: {last[0]}"
    if answer.id:
        why += f"; if the command runs, what it prints is in {answer.output_path}"
    return Launched(error=why, exit_code=1)
