"""Events of a process that tfmemtop did not start and reads from outside."""

from enum import Enum

import msgspec

from tfmemtop.bounds import Name, Number, Text, Words
from tfmemtop.events.base import Event, Latest
from tfmemtop.events.damage import Damage


class OutsideState(Enum):
    """How far the reading of a process from outside has come, or what prevents it."""

    READING = "reading"
    STOPPED = "stopped"  # it is read, but a signal or a debugger has stopped the process: no figure changes
    NO_TENSORFLOW = "no_tensorflow"  # TensorFlow is not, or not yet, in the process; detail: a child that has it
    NO_DEVICES = "no_devices"  # TensorFlow is in the process and has not made its devices
    NO_POOL = "no_pool"  # TensorFlow has made its devices, and none of its allocators has a pool

    NO_TABLE = "no_table"  # the memory layout of this version is not known; detail: the version
    NO_VERSION = "no_version"  # no file beside the library contains its version
    REPLACED = "replaced"  # the library's file has been replaced since it was loaded
    NOT_FOUND = "not_found"  # the allocators cannot be found; ``damage`` is the reason
    NOT_SOUND = "not_sound"  # the figures cannot be right; ``damage`` is the reason

    OTHER_USER = "other_user"
    ONLY_ANCESTORS = "only_ancestors"  # ptrace_scope 1
    ONLY_ROOT = "only_root"  # ptrace_scope 2
    NOBODY_MAY = "nobody_may"  # ptrace_scope 3
    NO_CAPABILITY = "no_capability"  # root without CAP_SYS_PTRACE, as in a container
    PROTECTED = "protected"  # the process forbids even its own user to read it
    REFUSED = "refused"  # the kernel refuses, for a reason that is not known

    EXECUTED = "executed"  # the process has become another program
    GONE = "gone"  # the process has ended; detail: the process numbers of children that go on
    LEFT = "left"  # tfmemtop no longer reads the process, which goes on

    @property
    def inside(self) -> bool:
        """Whether TensorFlow is in the process and its lists can be read."""
        return self in (OutsideState.READING, OutsideState.STOPPED, OutsideState.NO_DEVICES, OutsideState.NO_POOL)

    @property
    def may_change(self) -> bool:
        """Whether the process itself may come to another state, so that it should be read again."""
        waits = (OutsideState.NO_TENSORFLOW, OutsideState.EXECUTED, OutsideState.NOT_SOUND, OutsideState.NOT_FOUND)
        return self.inside or self in waits


class Outside(Event, tag="outside", frozen=True):
    """A process is read from outside: no hook is in it, and what only a hook can read is not known.

    ``tensorflow`` is TensorFlow's version, where known.
    """

    keep = Latest("pid")
    urgent = True

    pid: Number
    state: OutsideState
    detail: Text = ""
    ppid: Number = 0
    argv: Words = msgspec.field(default_factory=list)
    python: Name = ""
    executable: Text = ""
    tensorflow: Name | None = None
    tensorflow_path: Text | None = None
    damage: Damage | None = None
