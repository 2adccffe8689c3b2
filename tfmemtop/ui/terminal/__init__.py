"""The script's terminal: turns what the script has written into lines."""
