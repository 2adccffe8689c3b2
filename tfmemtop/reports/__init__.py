"""Reports on runs, as text and as JSON."""
