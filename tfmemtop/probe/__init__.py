"""The native library that reads TensorFlow's allocators, and how it is built on demand."""
