"""``python -m tfmemtop`` is ``tfmemtop``."""

from tfmemtop.boot import start

start()
