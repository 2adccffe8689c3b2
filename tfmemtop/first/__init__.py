"""The first picture: the GPUs and the processes on them, drawn while Textual is still being imported.

It is drawn by a process of its own that ends at once: it takes nothing from the start of the script, and the driver's
library stays out of the screen's memory. So that it is there within a few hundredths of a second, it imports next to
nothing: the driver is asked through ``ctypes``, and lines are plain text. ``tests/ui/test_first_picture.py`` compares
it with the screen, cell by cell. Wherever the two could differ (divided cards, figures that lack, another order of the
table), no first picture is drawn.
"""
