"""Tools that are run by hand: :mod:`.corpus` tries to make tfmemtop do harm, :mod:`.bench` measures what it costs.

Each is one command: ``python -m tests.tools.bench``, ``python -m tests.tools.corpus.scripts`` and others.
"""
