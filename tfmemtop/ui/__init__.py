"""The screen: Textual's app and its widgets, which draw the state."""
