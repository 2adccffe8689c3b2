"""The only room with English: every sentence that screen, reports and commands say, made from facts."""
