"""The only folder with English text: it makes every sentence of the screen, the reports and the commands from facts."""
