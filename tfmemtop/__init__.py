"""Watch and control the GPU memory of a TensorFlow program while it runs."""

__version__ = "0.2.0"


def load_ipython_extension(shell: object) -> None:
    """Give a notebook the command ``%memtop``. IPython calls this function for ``%load_ext tfmemtop``."""
    from tfmemtop.notebooks.magic import memtop

    shell.register_magic_function(memtop)  # type: ignore[attr-defined]
