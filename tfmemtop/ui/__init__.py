"""The screen: Textual's app and its widgets; a function of the state."""
