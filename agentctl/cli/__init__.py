"""The command line: each command parses its arguments, calls one operation and prints the result."""
