"""Findings: what the state means. A file of findings has their condition, sentence and remedies together.

A finding is one fact about the run's memory that the user may need, such as a leak or a limit that is too low.
"""
