"""The error texts for a script or an engine that could not be started, or has not ended, in one line. Pure."""

from tfmemtop.engine.process.unstarted import Unstarted, Why

_TEXTS = {
    Why.NO_COMMAND: "no command to start",
    Why.NOT_FOUND: "{name}: command not found",
    Why.NO_FILE: "{name}: no such file",
    Why.IS_DIRECTORY: "{name}: is a directory",
    Why.NOT_EXECUTABLE: "{name}: not executable",
    Why.NO_INTERPRETER: "{name}: the interpreter named in its first line is not there",
    Why.SYSTEM: "{name}: {detail}",
    Why.SPAWN: "{name}: cannot be started: {detail}",
    Why.NO_PROCESS: "there is no process {name}",
    Why.DRIVER_SILENT: "the NVIDIA driver does not answer: the settings cannot be checked",
    Why.METRICS_ADDRESS: "no metrics at {name}: {detail}",
    Why.METRICS_FILE: "no metrics in {name}: {detail}",
    Why.METRICS_NO_FILE: "no metrics in {name}: it is not a regular file",
    Why.REFUSED: "{detail}",
    Why.ENGINE_FAILED: "the engine cannot be started: {detail}",
}

HELD_BY_DRIVER = "the NVIDIA driver does not answer; the kernel cannot end this process before it answers"
"""A command prints this when it should end while one of its threads is in the driver."""


def crashed(signal: str) -> str:
    """Return the line for the screen of a session that only watches, if a library ends its process by *signal*."""
    return f"ended by {signal}: a library crashed, perhaps the NVIDIA driver's. The watched processes go on."


def start_text(unstarted: Unstarted) -> str:
    """Return why the script was not started, as one line without a full stop. It contains text from outside."""
    text = _TEXTS[unstarted.why].format(name=unstarted.name, detail=unstarted.detail or "it ended")
    if unstarted.output_path is not None:
        text += f"; if the command runs, what it prints is in {unstarted.output_path}"
    return text
