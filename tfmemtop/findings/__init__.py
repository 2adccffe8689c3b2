"""Findings: what the state means. Each file has the condition, the sentence and the remedies of some of them.

A finding is one fact about the run's memory that the user may need, such as a leak or a limit that is too low.
"""
