"""Jupyter: kernels that are sessions, the server that can restart them, and the command ``%memtop`` in a notebook."""
