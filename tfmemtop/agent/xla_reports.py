"""Has XLA write its reports of this process to a folder of this process's own, if the user has requested reports."""

import os

_FLAGS, _FOLDER = "XLA_FLAGS", "TFMEMTOP_XLA"
_DIGITS = "0123456789"


def own_folder(pid: int) -> bool:
    """Put *pid* into the path in ``XLA_FLAGS``. Return ``False`` if reports are requested, and the path is not there.

    Each process needs a folder, as modules have the same names in every process. XLA reads its flags when TensorFlow
    first compiles. The variable is set past ``os.environ``, where the script would see it.
    """
    folder = os.environ.get(_FOLDER)
    if not folder:
        return True
    before, found, after = os.environ.get(_FLAGS, "").partition(folder + "/")
    if not found:
        return False  # the script has set the variable anew
    os.putenv(_FLAGS, before + found + str(pid) + after.lstrip(_DIGITS))
    return True
