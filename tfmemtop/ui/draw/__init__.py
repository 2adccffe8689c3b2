"""Functions that turn figures into lines: bars, graphs, maps, text. Pure."""
