"""Starts an engine."""

import os
import pickle
import subprocess

from tfmemtop import boot
from tfmemtop.engine.process.launch import Launch, Launched
from tfmemtop.events.unstarted import Unstarted, Why


def start_apart(launch: Launch) -> Launched:
    """Start an engine like :func:`start`, but not as a child of this process, which will become another program.

    Call this before there are other threads.
    """
    answers, told = os.pipe()
    between = os.fork()
    if between == 0:
        try:
            os.close(answers)
            # Another session may watch this process. By these variables, it would take the engine for a process of its
            # run, and would end it.
            for name in [name for name in os.environ if name.startswith("TFMEMTOP_")]:
                del os.environ[name]
            with os.fdopen(told, "wb") as answer:
                pickle.dump(start(launch), answer)
        finally:
            os._exit(0)
    os.close(told)
    with os.fdopen(answers, "rb") as sent:
        answered = sent.read()
    os.waitpid(between, 0)
    try:
        launched: Launched = pickle.loads(answered)
        return launched
    except (EOFError, pickle.UnpicklingError):  # that process was killed
        return Launched(error=Unstarted(Why.ENGINE_FAILED))


def start(launch: Launch) -> Launched:
    """Start an engine in a process session of its own and in this process's working folder. It starts the script.

    All errors, also those in the engine's own start, are returned as ``Launched.error``. No script runs then, unless
    the error has an ``output_path``: in that case the script may run.
    """
    # Answers have a file descriptor of their own, since any library may print to stdout.
    answers, told = os.pipe()
    os.set_inheritable(told, True)
    try:
        engine = subprocess.Popen(
            boot.command("tfmemtop.engine.__main__", str(told)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            # File descriptors that the user's shell opened for the script, as in <(…), pass through the engine to it.
            close_fds=False,
        )
    except OSError as error:
        os.close(answers)
        return Launched(error=Unstarted(Why.ENGINE_FAILED, detail=str(error)))
    finally:
        os.close(told)
    # The engine goes on by itself. With a return code set, Popen neither waits for it nor warns that it still runs.
    engine.returncode = 0
    assert engine.stdin and engine.stderr
    with engine.stderr as complaints, os.fdopen(answers, "rb") as sent:
        try:
            with engine.stdin as asked:
                pickle.dump(launch, asked)
        except OSError:
            pass  # the engine has ended; its last message is read below
        answer = Launched()
        try:
            while not answer.started and answer.error is None:
                answer = pickle.load(sent)
            return answer
        except (EOFError, pickle.UnpicklingError):
            pass  # the engine has ended
        last = complaints.read().decode(errors="replace").strip().splitlines()[-1:]
    detail = last[0] if last else ""
    return Launched(error=Unstarted(Why.ENGINE_FAILED, detail=detail, output_path=answer.output_path))
