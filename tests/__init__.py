"""The tests, with a folder for each room of the package. These modules help to write them:

- ``streams`` and ``findings/situations`` make small sessions out of events, ``recordings/`` has real ones.
- ``hooked`` starts scripts with the hook, ``engines`` engines, ``starting`` the program on a terminal, ``notebook``
  kernels, ``contained`` programs in containers.
- ``once`` makes a run once for several tests. ``forked`` forks scripts from a process that has imported TensorFlow.
- ``field`` has programs whose memory problem is known, and judges what ``tfmemtop why`` says of them.

What a test costs stands in its markers: see ``kinds``.
"""
