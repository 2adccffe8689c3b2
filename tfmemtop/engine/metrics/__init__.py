"""Exports a session to Prometheus: makes samples from the state, serves them as a page, and writes them to a file."""
