"""Stand-ins for modules of Python's standard library, as far as the agent uses them, built on C modules alone.

In the watched process the agent's ``import json`` finds ``json.py`` here. The real module might call functions that the
script has put into it, would be imported earlier than the script imports it, or might be the script's own module of
that name. Type checkers use the real modules, and so do tests that import the agent as a part of tfmemtop.
"""
