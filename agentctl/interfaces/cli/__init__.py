"""The command line: how it is read, where its errors end, and how what a command shows is printed."""
