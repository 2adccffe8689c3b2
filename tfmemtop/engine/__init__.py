"""The process that watches a script: its sources of readings, the script's process, the stream to readers."""
