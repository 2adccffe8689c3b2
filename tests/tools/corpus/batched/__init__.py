"""Keras models that train a few steps with the batch size that is their first argument.

For each model, ``PLACES`` has the size in MiB of the pool under which its largest batch is searched.
"""

from pathlib import Path

_HERE = Path(__file__).parent

PLACES = {"dense": 128, "convolution": 320, "attention": 384, "recurrent": 256}

SCRIPTS = {name: str(_HERE / f"{name}.py") for name in PLACES}
