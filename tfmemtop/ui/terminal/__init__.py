"""The script's terminal: what it has written, as lines."""
