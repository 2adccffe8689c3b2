"""Searches for the smallest memory limit that works, or for the largest value of a number in the command, by tries.

It decides what to try next, when a try is over, and what its result is. No I/O.
"""
