"""The command line, one file per command: the only place that reads argv, prints and sets the exit status."""
