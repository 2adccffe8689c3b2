"""Reads what XLA writes about the buffers of a compiled cluster. Pure: texts in, :class:`XlaCluster` out."""
