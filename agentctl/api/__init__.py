"""What a Python program does with agentctl: the operations of the command line, typed; `import agentctl` offers it."""
