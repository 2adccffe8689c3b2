"""Imports TensorFlow, and then becomes, in a forked child each, the scripts that it is asked for on its standard input.

A request is a packet of JSON, the script's path and arguments, with three descriptors: its standard input, output and
error. The answers are the child's number, and when the child has ended how, as ``os.waitpid`` has it.
"""

import json
import os
import socket
import sys
from pathlib import Path

import tensorflow  # noqa: F401


def become_the_next_script() -> None:
    """In a child, once a script is asked for. The parent stays in here until nobody is left who could ask."""
    line = socket.socket(fileno=0)
    line.send(b"ready")
    while True:
        request, streams, _, _ = socket.recv_fds(line, 1 << 16, 3)
        if not request:
            os._exit(0)
        child = os.fork()
        if child == 0:
            break
        for stream in streams:
            os.close(stream)
        line.send(b"%d" % child)
        line.send(b"%d" % os.waitpid(child, 0)[1])
    line.detach()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.argv = json.loads(request)
    sys.path[0] = str(Path(sys.argv[0]).parent)


become_the_next_script()
__file__ = sys.argv[0]
exec(compile(Path(__file__).read_bytes(), __file__, "exec"))
