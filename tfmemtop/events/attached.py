"""A process that tfmemtop did not start and reads from outside."""

from enum import Enum

import msgspec

from tfmemtop.bounds import Name, Number, Text, Words
from tfmemtop.events.base import Event, Origin
from tfmemtop.events.damage import Damage
from tfmemtop.events.keep import Latest


class OutsideState(Enum):
    """How far the reading of a process from outside is, or what stands in its way."""

    READING = "reading"
    STOPPED = "stopped"  # read, but a signal or a debugger has stopped the process: nothing moves
    NO_TENSORFLOW = "no_tensorflow"  # it is not, or not yet, in the process; detail: of its children one that has it
    NO_DEVICES = "no_devices"  # TensorFlow is there and has not made its devices
    NO_POOL = "no_pool"  # it has made them, and none of its allocators keeps a pool

    HOOKED = "hooked"  # the hook has been put into it, and reads from within

    NO_TABLE = "no_table"  # detail: the version, whose layout no table has
    NO_VERSION = "no_version"  # nothing beside the library says which version it is
    REPLACED = "replaced"  # the library's file has been replaced since it was loaded
    BUILT_OTHERWISE = "built_otherwise"  # detail: the library that has all of TensorFlow in it
    NOT_64_BIT = "not_64_bit"
    NOT_FOUND = "not_found"  # why is in ``damage``
    NOT_SOUND = "not_sound"  # likewise

    OTHER_USER = "other_user"
    ONLY_ANCESTORS = "only_ancestors"  # ptrace_scope 1
    ONLY_ROOT = "only_root"  # ptrace_scope 2
    NOBODY_MAY = "nobody_may"  # ptrace_scope 3
    NO_CAPABILITY = "no_capability"  # root without CAP_SYS_PTRACE, as in a container
    PROTECTED = "protected"  # the process forbids it to its own user
    REFUSED = "refused"  # for a reason that cannot be seen

    EXECUTED = "executed"  # it has become another program
    GONE = "gone"  # it has ended; detail: the numbers of children that go on
    LEFT = "left"  # tfmemtop has left it; it goes on

    @property
    def inside(self) -> bool:
        """Whether TensorFlow is there and its lists can be read."""
        return self in (OutsideState.READING, OutsideState.STOPPED, OutsideState.NO_DEVICES, OutsideState.NO_POOL)

    @property
    def may_change(self) -> bool:
        """Whether the process itself may come to another state, so that it is worth looking again."""
        waits = (OutsideState.NO_TENSORFLOW, OutsideState.EXECUTED, OutsideState.NOT_SOUND, OutsideState.NOT_FOUND)
        return self.inside or self in waits or self is OutsideState.HOOKED


class Outside(Event, tag="outside", frozen=True):
    """A process is read from outside: no hook is in it, and what only a hook can know is not known.

    ``tensorflow`` is the version and ``build`` the linker's number of its library, where known. In older recordings
    ``detail`` is a sentence where ``damage`` is now.
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
    build: Name | None = None
    damage: Damage | None = None


class InjectionState(Enum):
    """How far it is with the hook that shall be put into a process that runs already."""

    ASKED = "asked"  # Python has been asked to run the hook, and its main thread has not come to that yet
    ARRIVED = "arrived"
    ALREADY = "already"  # the hook is in it, and serves another tfmemtop

    OLD_PYTHON = "old_python"  # detail: its version
    NOT_PYTHON = "not_python"  # detail: the program
    OTHER_USER = "other_user"
    ELSEWHERE = "elsewhere"  # it sees other files, as in a container
    DISABLED = "disabled"  # its user, or who built its Python, has switched this off
    NOT_ALLOWED = "not_allowed"  # the kernel does not let us write to its memory
    REPLACED = "replaced"  # detail: a C function that the hook needs and that the script has replaced
    FAILED = "failed"  # detail: how

    @property
    def under_way(self) -> bool:
        """Whether the hook is there or may still come."""
        return self in (InjectionState.ASKED, InjectionState.ARRIVED)


class Injection(Event, tag="injection", frozen=True):
    """The hook is being put into a process that runs already, since the user asked for that."""

    origin = Origin.HOOK
    keep = Latest("pid")
    urgent = True

    pid: Number
    state: InjectionState
    detail: Text = ""
