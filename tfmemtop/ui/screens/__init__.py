"""What opens over the main screen: dialogs, and screens of their own."""
