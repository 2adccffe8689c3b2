"""Notices for the user about tfmemtop's own work."""

from enum import Enum

from tfmemtop.bounds import Name, Number, Size, Text
from tfmemtop.events.base import Event
from tfmemtop.events.hook_error import HookPart
from tfmemtop.events.keep import Latest
from tfmemtop.events.unstarted import Unstarted


class Level(Enum):
    """How serious a notice is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class NoticeKind(Enum):
    """What a notice is about. Its text, and what helps, are in ``findings/notice_texts.py``."""

    NO_DRIVER = "no_driver"
    NO_GPU = "no_gpu"  # the driver lists none
    DRIVER_MISMATCH = "driver_mismatch"  # the library does not fit the kernel module
    DRIVER_FORBIDDEN = "driver_forbidden"
    DRIVER_FAILED = "driver_failed"  # detail: the driver's error
    DRIVER_SILENT = "driver_silent"  # a call takes too long
    GPU_LOST = "gpu_lost"  # about: its index
    GPUS_UNREAD = "gpus_unread"  # detail: the error
    PROCESSES_UNREAD = "processes_unread"  # detail: the error
    PROCESSES_RENUMBERED = "processes_renumbered"  # the driver's numbers are not those of this container
    PROCESSES_HIDDEN = "processes_hidden"  # the driver lists processes that cannot be read here

    OUTPUT_FILE_MISSING = "output_file_missing"  # no file could be made for the script's output
    OUTPUT_FILE_FAILED = "output_file_failed"  # detail: the error
    INPUT_LOST = "input_lost"  # the script does not read what was typed
    RECORDING_ENDED = "recording_ended"  # detail: what is wrong with the recording
    LAST_READINGS_LOST = "last_readings_lost"  # detail: the error
    ATTACH_NO_PROCESS = "attach_no_process"  # about: its number
    ATTACH_BESIDE_SCRIPT = "attach_beside_script"  # about: the process
    KERNEL_IS_JUPYTERS = "kernel_is_jupyters"  # only Jupyter can restart a kernel
    NOT_CHOSEN = "not_chosen"  # the settings of a kernel's next start are not changed; unstarted: why
    NOT_RELAUNCHED = "not_relaunched"  # unstarted: why
    ENDING_FAILED = "ending_failed"  # detail: the error
    SIGNAL_FAILED = "signal_failed"  # detail: the processes, and why

    HOOK_OF_OTHER_USER = "hook_of_other_user"  # about: the user's id
    HOOK_TOO_OFTEN = "hook_too_often"  # a process connects too often as a hook; about: the process
    HOOK_TOO_MUCH = "hook_too_much"  # a hook sends too much; about: the process; count: events left out until now
    HOOKS_WAIT = "hooks_wait"  # no file descriptor is left
    HOOK_FAILED = "hook_failed"  # about: the process; part, of: what it was doing; detail: the error
    HOOK_UNREAD = "hook_unread"  # the hook sent data that cannot be read; about: the process; detail: why
    HOOK_TOO_LONG = "hook_too_long"  # the hook sent too long a packet; about: the process; count: bytes allowed
    NO_WINDOW = "no_window"  # a window of allocations was requested, and none opened; about: the process; of: why
    FINDINGS_WITHOUT_WINDOWS = "findings_without_windows"  # no window is opened for findings now; detail: the error

    READER_OF_OTHER_USER = "reader_of_other_user"
    COMMAND_UNREAD = "command_unread"  # detail: the error
    READER_SLOW = "reader_slow"  # count: readings left out
    EVENTS_UNREAD = "events_unread"  # count: how many events could not be read
    EVENT_LEFT_OUT = "event_left_out"  # detail: the error
    DEVICES_LEFT_OUT = "devices_left_out"  # about: the process; count: how many are kept
    PROCESSES_LEFT_OUT = "processes_left_out"  # count: how many are kept
    NOTICES_LEFT_OUT = "notices_left_out"  # count: how many are kept

    ALERT_FAILED = "alert_failed"  # about: its exit code; detail: the command
    ALERT_NOT_STARTED = "alert_not_started"  # detail: the error

    EXPORTER_ENDED = "exporter_ended"  # detail: its error
    METRICS_FILE_FAILED = "metrics_file_failed"  # detail: the error
    METRICS_SD_LEFT = "metrics_sd_left"  # the file for Prometheus is not removed; detail: the file and the error

    ENGINE_GONE = "engine_gone"  # about: the script's process, if it goes on; detail: the file with its output


class Notice(Event, tag="notice", frozen=True):
    """A message for the user about tfmemtop's own work. Without a ``kind`` it withdraws the notice of its ``key``.

    ``key`` names the subject: a newer notice replaces an older one of the same key. ``about`` and ``count`` are
    numbers whose meaning depends on the kind. ``detail`` is text from outside, such as that of an error.
    ``unstarted`` is the reason why nothing was started.
    """

    keep = Latest("key", most=64)
    reshapes = False
    urgent = True

    key: Name
    level: Level
    kind: NoticeKind | None
    detail: Text = ""
    about: Number | None = None
    count: Size | None = None
    part: HookPart | None = None  # only with the kind ``HOOK_FAILED``
    of: Name = ""  # with the kinds ``HOOK_FAILED`` and ``NO_WINDOW``
    unstarted: Unstarted | None = None
