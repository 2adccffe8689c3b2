"""Stand-ins for Python modules of the standard library, as far as the agent uses them, on its C modules alone.

In the watched process the agent's ``import json`` finds ``json.py`` here. The real one would call what the script
has put into it, would be imported earlier than the script does, or be the script's own module of that name.
Type checkers see the real ones, and so do tests that import the agent as a part of tfmemtop.
"""
