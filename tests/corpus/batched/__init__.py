"""Keras models that train a few steps with the batch size that is their first argument.

``PLACES`` has for each the pool in MiB under which its largest batch is looked for.
"""

from pathlib import Path

_HERE = Path(__file__).parent

PLACES = {"dense": 128, "convolution": 320, "attention": 384, "recurrent": 256}

SCRIPTS = {name: str(_HERE / f"{name}.py") for name in PLACES}
