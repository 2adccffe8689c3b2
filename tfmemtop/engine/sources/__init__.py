"""Where readings come from: hooks, the driver, /proc."""
