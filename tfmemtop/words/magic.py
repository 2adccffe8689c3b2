"""What ``%memtop`` says in a notebook of itself. A kernel loads it, so it imports nothing."""

UNWATCHED = (
    "tfmemtop does not watch this kernel. Add one that it watches: tfmemtop kernel install. "
    'Then change the notebook\'s kernel to "Python (tfmemtop)".'
)
NO_PICTURE = "matplotlib is missing. Install it in this environment to see a graph of the session here."

CURVES = (("total", "process total"), ("pool", "pool"), ("in_use", "in use"))
"""The curves of the picture, the highest first: the key in what is told, and the name."""

LIMIT = "limit"
OUT_OF_MEMORY = "out of memory"
TIME = "seconds since the kernel's start"


def not_asked(reason: object) -> str:
    """The session could not be asked; *reason* is empty if nothing is known."""
    return f"tfmemtop gave no answer: {reason or 'it printed nothing'}"
