"""How long a test waits for something that has to happen, before it fails."""

# Whatever is waited for takes a fraction of this. A slow machine with other things to do must not fail a test.
PATIENCE_S = 240
