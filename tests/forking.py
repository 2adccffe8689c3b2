"""Import TensorFlow once, and then run scripts, each in a process forked from this one.

``tests/forked.py`` starts this program and requests the scripts. Its argument is the file descriptor of a listening
socket. It runs in the Python of the scripts, 3.9 or later, and ends with the last of its connections.
"""

import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from types import CodeType
from typing import Any

del sys.path[0]  # the tests' folder: scripts must not find its modules
import tensorflow  # noqa: E402, F401


def serve(listener: socket.socket) -> "dict[str, Any]":
    """Fork for each request. This returns only in the forked processes: the request, which names the script."""
    lines: dict[int, socket.socket] = {}
    ends: dict[int, tuple[int, int]] = {}  # by the pidfd: the process, and the line of the request
    ready = select.poll()
    ready.register(listener, select.POLLIN)
    begun = False
    while lines or not begun:
        for descriptor, _ in ready.poll():
            if descriptor == listener.fileno():
                line = listener.accept()[0]
                lines[line.fileno()] = line
                ready.register(line, select.POLLIN)
                begun = True
                line.send(b"here")
            elif descriptor in ends:
                pid, asker = ends.pop(descriptor)
                ready.unregister(descriptor)
                os.close(descriptor)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                if asker in lines:
                    lines[asker].send(json.dumps(code).encode())
            elif descriptor in lines:
                packet, given, _, _ = socket.recv_fds(lines[descriptor], 1 << 20, 3)
                if not packet:
                    ready.unregister(descriptor)
                    lines.pop(descriptor).close()
                    for end, (pid, asker) in ends.items():
                        if asker == descriptor:  # no script outlives its test
                            os.kill(pid, signal.SIGKILL)
                            ends[end] = pid, -1
                    continue
                pid = os.fork()
                if pid == 0:
                    for place, one in enumerate(given):
                        os.dup2(one, place)
                    for one in (*given, *ends):
                        os.close(one)
                    for line in lines.values():
                        line.close()
                    wanted: dict[str, Any] = json.loads(packet)
                    return wanted
                for one in given:
                    os.close(one)
                end = os.pidfd_open(pid)
                ends[end] = pid, descriptor
                ready.register(end, select.POLLIN)
                lines[descriptor].send(json.dumps(pid).encode())
    path = Path(listener.getsockname())
    path.unlink()
    path.parent.rmdir()
    os._exit(0)


def wanted_script() -> "tuple[CodeType, dict[str, Any]]":
    """Serve requests. In a forked process, return the code of its script, and the namespace in which it runs."""
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        wanted = serve(listener)
    os.chdir(wanted["folder"])
    os.environ.update(wanted["variables"])
    sys.argv[:] = wanted["arguments"]
    path = Path(sys.argv[0])
    sys.path.insert(0, str(path.parent))
    module = sys.modules["__main__"] = type(sys)("__main__")
    module.__file__ = str(path)
    return compile(path.read_text(), str(path), "exec"), module.__dict__


exec(*wanted_script())
