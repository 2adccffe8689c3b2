"""The messages of ``%memtop`` in a notebook. The notebook's kernel loads this module, so it imports nothing."""

UNWATCHED = (
    "tfmemtop does not watch this kernel. Add one that it watches: tfmemtop kernel install. "
    'Then change the notebook\'s kernel to "Python (tfmemtop)".'
)
NO_PICTURE = "matplotlib is missing. Install it in this environment to see a graph of the session here."

CURVES = (("total", "process total"), ("pool", "pool"), ("in_use", "in use"))
"""The curves of the picture, the highest first: the key in tfmemtop's answer, and the name."""

LIMIT = "limit"
OUT_OF_MEMORY = "out of memory"
TIME = "seconds since the kernel's start"


def not_asked(reason: object) -> str:
    """Return the error for a session that could not be read; *reason* is empty if it is not known."""
    return f"tfmemtop gave no answer: {reason or 'it printed nothing'}"
