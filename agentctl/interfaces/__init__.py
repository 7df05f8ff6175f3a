"""What people and programs see and press: a room for each surface, over the commands that all of them offer."""
