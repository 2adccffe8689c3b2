"""Makes the first event of a stream."""

import os
import pwd
import socket
import time

import tfmemtop
from tfmemtop.engine.process.launch import Launch, readable
from tfmemtop.engine.sources.cgroup import host_memory
from tfmemtop.engine.sources.processes import read_command, read_environment
from tfmemtop.events import FORMAT, Session
from tfmemtop.placement import placement


def describe(launch: Launch, id: str, output_path: str | None) -> Session:
    """Return the event that begins a session: its command, its user, its machine. Its time is 0 by definition."""
    memory = host_memory()
    host = socket.gethostname()
    return Session(
        t=0.0,
        format=FORMAT,
        version=tfmemtop.__version__,
        id=id,
        started=time.time(),
        host=host,
        user=_user(),
        host_memory=memory.total,
        host_memory_of=memory.owner,
        cores=os.cpu_count() or 1,
        interval_s=launch.interval_s,
        holders_interval_s=launch.holders_interval_s,
        command=watched(launch),
        output_path=output_path,
        placement=placement(_environment(launch), host),
    )


def watched(launch: Launch) -> list[str]:
    """Return the command line that is watched: the script's, or that of the process that is read from outside."""
    if launch.attach is not None:
        return read_command(launch.attach)
    return [readable(argument) for argument in launch.argv]


def _environment(launch: Launch) -> dict[str, str]:
    if launch.attach is None:
        return launch.environment
    try:
        return read_environment(launch.attach)
    except OSError:
        return {}  # the process has ended, or belongs to another user: its placement is not known


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
