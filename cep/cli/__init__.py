"""The command line: one file for each command, loaded when it is called."""
