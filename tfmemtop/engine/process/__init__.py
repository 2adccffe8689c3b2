"""The script's process: its start, its terminal, its output, its end."""
