"""Has XLA write its reports of this process to a folder of this process, where the user asked for reports."""

import os

_FLAGS, _FOLDER = "XLA_FLAGS", "TFMEMTOP_XLA"
_DIGITS = "0123456789"


def own_folder(pid: int) -> bool:
    """Put *pid* into the path in ``XLA_FLAGS``. ``False`` if reports are asked for, and the path is not there.

    Modules have the same names in every process. XLA reads its flags once TensorFlow first compiles. The variable is
    set past ``os.environ``, where the script would see it.
    """
    folder = os.environ.get(_FOLDER)
    if not folder:
        return True
    before, found, after = os.environ.get(_FLAGS, "").partition(folder + "/")
    if not found:
        return False  # the script has set it anew
    os.putenv(_FLAGS, before + found + str(pid) + after.lstrip(_DIGITS))
    return True
