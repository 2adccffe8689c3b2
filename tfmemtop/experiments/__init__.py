"""The next run: its settings, runs side by side, the search by tries, and the replay under other settings."""
