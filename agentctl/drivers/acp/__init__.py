"""Drives any program that speaks the Agent Client Protocol (ACP) on its standard input and output.

What is known of each program is a row of `programs.yaml`; whatever can be is handled by what a program shows, not by
its name. `wire.py` is its only module that imports the protocol's library, and only a running agent loads it.
"""
