"""The one ordered stream: its backlog, its readers, its recording."""
