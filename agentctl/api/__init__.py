"""The Python interface: the operations of the command line, typed. Programs get it by `import agentctl`."""
