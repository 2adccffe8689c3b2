"""What can go wrong with a recording."""


class RecordingError(Exception):
    """A recording cannot be written or read; the message is one line fit for the user."""


def reason_of(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
