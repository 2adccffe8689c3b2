"""Makes an :class:`XlaCluster` of the texts that XLA writes about a compiled cluster's buffers. It reads no files."""
