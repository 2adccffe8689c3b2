"""Notices for the user about tfmemtop's own work, and errors of its hooks."""

from enum import Enum

from tfmemtop.bounds import Name, Number, Size, Text
from tfmemtop.events.base import DescribedEnum, Event, Latest, Newest, Origin


class Level(Enum):
    """How serious a notice is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class NoticeKind(DescribedEnum):
    """What a notice is about, its text, and what helps. In curly brackets: fields of :class:`Notice`."""

    NO_DRIVER = (
        "no_driver",
        "no NVIDIA driver here, so no GPU is shown",
        "if there is a GPU, install its driver; in a container, start it with --gpus all",
    )
    NO_GPU = (
        "no_gpu",
        "the NVIDIA driver lists no GPU",
        "see what nvidia-smi says; in a container, start it with --gpus all",
    )
    DRIVER_MISMATCH = (
        "driver_mismatch",
        "the NVIDIA driver's library does not fit the loaded kernel module, so the GPUs cannot be read",
        "the driver was updated while in use: restart the machine, or reload the nvidia modules",
    )
    DRIVER_FORBIDDEN = (
        "driver_forbidden",
        "no permission to talk to the NVIDIA driver",
        "check who may open /dev/nvidiactl",
    )
    DRIVER_FAILED = (  # detail: the driver's error
        "driver_failed",
        "the GPUs cannot be read: {detail}",
        "see what nvidia-smi says",
    )
    DRIVER_SILENT = (
        "driver_silent",
        "the NVIDIA driver does not answer",
        "see the kernel's log; a restart may be needed",
    )
    GPU_LOST = (  # about: its index
        "gpu_lost",
        "GPU {about} is lost: the driver no longer reaches it",
        "see the kernel's log for an Xid; reset the card or restart the machine",
    )
    GPUS_UNREAD = "gpus_unread", "reading the GPUs has failed and is tried again: {detail}"  # detail: the error
    PROCESSES_UNREAD = (  # detail: the error
        "processes_unread",
        "reading the processes has failed and is tried again: {detail}",
    )
    PROCESSES_RENUMBERED = (
        "processes_renumbered",
        "the driver's process numbers are not those of this container, so which processes are here is unknown",
        "start the container with --pid=host",
    )
    PROCESSES_HIDDEN = (
        "processes_hidden",
        "the driver lists processes that cannot be seen here, so their owners are unknown",
        "where /proc is mounted with hidepid, root sees them",
    )

    OUTPUT_FILE_MISSING = "output_file_missing", "the script's output is not kept in a file", "make room in your home"
    OUTPUT_FILE_FAILED = (  # detail: the error
        "output_file_failed",
        "the script's output is not kept in a file: {detail}",
        "make room on the disk; the screen still shows the output",
    )
    INPUT_LOST = "input_lost", "the script does not read its input, so what was typed is lost"
    RECORDING_ENDED = "recording_ended", "{detail}; the run is not affected"  # detail: what is wrong with the recording
    LAST_READINGS_LOST = "last_readings_lost", "the last readings are lost: {detail}"  # detail: the error
    ATTACH_NO_PROCESS = "attach_no_process", "there is no process {about} any more"  # about: its number
    ATTACH_BESIDE_SCRIPT = (  # about: the process
        "attach_beside_script",
        "process {about} is not read: this session has a script of its own",
        "read it in another terminal: tfmemtop attach PID",
    )
    KERNEL_IS_JUPYTERS = "kernel_is_jupyters", "not relaunched: a kernel is restarted in Jupyter"
    NOT_CHOSEN = "not_chosen", "the kernel's next start is not changed: {detail}"  # detail: why
    NOT_RELAUNCHED = "not_relaunched", "not relaunched: {detail}"  # detail: why
    ENDING_FAILED = "ending_failed", "ending the run has failed: {detail}"  # detail: the error
    SIGNAL_FAILED = "signal_failed", "the signal was not sent: {detail}"  # detail: the processes, and why

    HOOK_OF_OTHER_USER = (  # about: the user's id
        "hook_of_other_user",
        "user {about} tried to report as a hook and was refused",
    )
    HOOK_FAILED = (  # about: the process; detail: what it was doing, and the error
        "hook_failed",
        "a part of the hook failed in process {about}; the script goes on: {detail}",
    )
    HOOK_UNREAD = (  # about: the process; detail: why
        "hook_unread",
        "a part of the hook failed in process {about}; the script goes on: the hook sent what cannot be read: {detail}",
    )
    NO_ADDRESSES = (  # detail: why
        "no_addresses",
        "the addresses of tensors are not read, because the library for that cannot be built ({detail}); "
        "what belongs to a variable or tensor is found by its size",
    )
    NO_WINDOW = (  # about: the process; detail: why
        "no_window",
        "no allocations of process {about} were recorded: {detail}",
    )
    FINDINGS_WITHOUT_WINDOWS = (  # detail: the error
        "findings_without_windows",
        "no more windows of allocations are opened for findings: {detail}",
    )

    READER_OF_OTHER_USER = "reader_of_other_user", "another user tried to look at this session and was refused"
    COMMAND_UNREAD = "command_unread", "a screen sent a command that cannot be read: {detail}"  # detail: the error
    READER_SLOW = (  # count: readings left out
        "reader_slow",
        "the screen or the recording could not keep up: {count} readings left out",
    )
    EVENTS_UNREAD = (  # count: how many events could not be read
        "events_unread",
        "{count} messages of the engine could not be read by this screen and were left out",
    )
    EVENT_LEFT_OUT = "event_left_out", "a reading could not be taken in: {detail}"  # detail: the error
    HOOK_TOO_MUCH = (  # about: the process; count: messages left out until now
        "hook_too_much",
        "process {about} reports more than can be stored: {count} of its reports were left out",
    )

    ALERT_FAILED = (  # about: its exit code; detail: the command
        "alert_failed",
        "the command {detail!r} has ended with exit code {about}",
    )
    ALERT_NOT_STARTED = (  # detail: the error
        "alert_not_started",
        "the command for --on-end or --on-oom cannot be started: {detail}",
    )

    EXPORTER_ENDED = (  # detail: its error
        "exporter_ended",
        "no more metrics for Prometheus: the exporter has ended ({detail})",
        "the run goes on",
    )
    METRICS_SD_LEFT = (  # detail: the file and the error
        "metrics_sd_left",
        "the file with the address of the metrics is not removed: {detail}",
        "remove it, or Prometheus says that the run does not answer",
    )

    SESSION_OVER = ("session_over", "the session has ended with the run", "[q] quits")
    ENGINE_GONE = (  # about: the script's process, if it goes on; detail: the file with its output
        "engine_gone",
        "",
        "[q] quits",
    )


class HookError(Event, tag="hook_error", frozen=True):
    """A part of tfmemtop failed inside the script, which went on.

    ``doing`` is what it was about to do, such as ``read:allocators``, and ``text`` the error.
    """

    origin = Origin.HOOK
    keep = Newest(50)

    pid: Number
    text: Text
    doing: Name = ""


class Notice(Event, tag="notice", frozen=True):
    """A message for the user about tfmemtop's own work. Without a ``kind`` it withdraws the notice of its ``key``.

    ``key`` names the subject: a newer notice replaces an older one of the same key. ``about`` and ``count`` are
    numbers whose meaning depends on the kind. ``detail`` is text from outside, such as that of an error.
    """

    keep = Latest("key", most=64)
    urgent = True

    key: Name
    level: Level
    kind: NoticeKind | None
    detail: Text = ""
    about: Number | None = None
    count: Size | None = None
