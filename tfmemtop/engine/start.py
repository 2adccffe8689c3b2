"""Starting an engine."""

import os
import subprocess

from tfmemtop import boot
from tfmemtop.engine.process.launch import Launch, Launched
from tfmemtop.engine.process.unstarted import Unstarted, Why


def start_apart(launch: Launch) -> Launched:
    """Like :func:`start`, but the engine is no child of this process, which is to become another program.

    To be called before there are threads.
    """
    answers, told = os.pipe()
    between = os.fork()
    if between == 0:
        try:
            os.close(answers)
            # By these a session that watches this process would take the engine for a process of its run, and end it.
            for name in [name for name in os.environ if name.startswith("TFMEMTOP_")]:
                del os.environ[name]
            with os.fdopen(told, "wb") as answer:
                answer.write(start(launch).encode())
        finally:
            os._exit(0)
    os.close(told)
    with os.fdopen(answers, "rb") as lines:
        line = lines.readline()
    os.waitpid(between, 0)
    return Launched.decode(line) if line else Launched(error=Unstarted(Why.ENGINE_FAILED))


def start(launch: Launch) -> Launched:
    """Start an engine, in a session of its own and in this process's working folder; it starts the script.

    Errors, of the engine's own start too, come as ``Launched.error``. Then no script runs, unless the error
    names an ``output_path``: then it may.
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
        return Launched(error=Unstarted(Why.ENGINE_FAILED, detail=str(error)))
    finally:
        os.close(told)
    # It goes on by itself: the process that starts it must neither wait for it nor be warned about that.
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
            answer = Launched.decode(line)
            if answer.started or answer.error is not None:
                return answer
        last = complaints.read().decode(errors="replace").strip().splitlines()[-1:]
    detail = last[0] if last else ""
    return Launched(error=Unstarted(Why.ENGINE_FAILED, detail=detail, output_path=answer.output_path))
