"""The smallest memory limit that works: where to look next, when a try is over, what to say of it. No I/O."""
