"""Reads TensorFlow's pools in a process that tfmemtop did not start, from outside.

Only ``/proc/PID/maps`` and ``/proc/PID/mem`` are read. Nothing is written into the process, no function of it is
called, and it is neither stopped nor traced. What is read is checked before it is used.
"""
