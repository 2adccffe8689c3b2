"""``python -m tfmemtop`` does the same as the command ``tfmemtop``."""

from tfmemtop.boot import start

start()
