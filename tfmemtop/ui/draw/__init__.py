"""Figures in, lines out: bars, graphs, maps, text. Pure."""
