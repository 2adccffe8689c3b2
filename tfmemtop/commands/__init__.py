"""One file for each thing the command line can do; each has ``run(arguments) -> exit code``."""
