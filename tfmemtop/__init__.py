"""See and steer the GPU memory of a TensorFlow program while it runs."""

__version__ = "0.1.0"
