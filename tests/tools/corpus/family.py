"""The role of each of our processes, found by parents, sessions and open sockets, never by a command line."""

import os
from contextlib import suppress
from pathlib import Path

from tfmemtop.engine.sources.processes import descendants, read_command, session_of


def roles(command: int, training: int | None, second: int | None = None) -> dict[str, int]:
    """Return our processes by role, among all that descend from this process.

    ``command`` is the process that the user started. ``second`` is another screen. ``keeper`` leads the session of the
    training. ``engine`` listens for screens. ``recorder`` listens for hooks where there is no engine. ``builder`` works
    in a session of its own once TensorFlow is there. ``group-listener`` is any further process beside a recorder.
    ``other`` is any further process beside an engine.
    """
    known = descendants(os.getpid())
    known -= {training} | (descendants(training) if training else set())
    found = {"command": command} if command in known else {}
    known.discard(command)
    if second in known:
        found["second"] = second
    known.discard(second or 0)
    keeper = session_of(training) if training else None
    if keeper in known:
        found["keeper"] = keeper
        known.discard(keeper)
    listening = _listeners()
    for pid in (*sorted(known), command):
        names = {listening[inode] for inode in _sockets(pid) if inode in listening}
        if "engine.sock" in names:
            found["engine"] = pid
        elif "hook.sock" in names and "engine" not in found:
            found["recorder"] = pid
    known -= set(found.values())
    homes = {session_of(pid) for pid in (command, *found.values())}
    for pid in sorted(known):
        own = session_of(pid)
        if own is None:
            continue
        if own not in homes:
            found.setdefault("builder", pid)
        else:
            found.setdefault("group-listener" if "engine" not in found and "keeper" not in found else "other", pid)
    return found


def found_by_name(name: str) -> list[int]:
    """Return the processes that ``pkill -f NAME`` would hit, among those that descend from this process.

    Processes of other runs are left alone.
    """
    return [pid for pid in descendants(os.getpid()) if name in " ".join(read_command(pid))]


def _listeners() -> dict[str, str]:
    """Return the file names of the unix sockets that a process listens on, by inode."""
    found = {}
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        words = line.split()
        if len(words) == 8 and int(words[3], 16) & 0x10000:
            found[words[6]] = words[7].rsplit("/", 1)[-1]
    return found


def _sockets(pid: int) -> set[str]:
    found = set()
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                target = str(link.readlink())
                if target.startswith("socket:["):
                    found.add(target[8:-1])
    return found
