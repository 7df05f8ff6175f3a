"""What a command is: its parameters, what it is given, where it is carried out; and the list of all commands.

Doors: `catalogue`, `command_model`, `far_line`, `invocation`, `parameters`, `surface`.
"""
