"""Jupyter: kernels that are sessions, the server that can restart them, and the commands within a notebook."""
