"""What a screen works on: a source of events, and the settings of the next run. It does not import Textual."""
