"""What people and programs see and press: a room for each surface, all of them over the same operations."""
