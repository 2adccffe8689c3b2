"""The first picture: the GPUs and the processes on them, drawn while Textual is still being imported.

A process of its own draws it and then ends. So it does not delay the start of the command, and the driver's library
is not loaded into the screen's process. The picture must be there within a few hundredths of a second. So it imports
next to nothing: it calls the driver through ``ctypes``, and its lines are plain text.

``tests/first/test_picture.py`` compares it with the screen, cell by cell. Where the two could differ (divided
cards, missing figures, another order of the table), no first picture is drawn.
"""
