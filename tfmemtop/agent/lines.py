"""Lines of the script's own code, between TensorFlow's."""

import os
import stat
import sys
from types import FrameType
from typing import NamedTuple, Optional

_CODE = 120  # characters

_LIBRARIES = {
    *("tensorflow", "keras", "tf_keras", __name__.split(".")[0]),
    *("importlib", "contextlib", "functools", "threading", "concurrent"),  # between TensorFlow's own frames
}


class Line(NamedTuple):
    """``"", 0`` where no code of the script is on the stack."""

    file: str
    number: int

    @property
    def code(self) -> str:
        """What stands there; empty if the file cannot be read."""
        import linecache  # TensorFlow has imported it long before

        try:
            # A script that was typed or piped in would be waited for, and taken from whoever reads on.
            if not stat.S_ISREG(os.stat(self.file).st_mode):
                return ""
        except OSError as error:
            if error.errno is None:  # a signal handler's
                raise
            # linecache knows more places
        return linecache.getline(self.file, self.number).strip()[:_CODE]


def line_of(frame: Optional[FrameType]) -> Line:
    """The innermost line from *frame* outwards that is neither TensorFlow's, Keras's nor ours."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).split(".")[0] not in _LIBRARIES:
            return Line(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return Line("", 0)


def callers_line() -> Line:
    """The line that called TensorFlow, which called us."""
    return line_of(sys._getframe(1))
