"""What people, tools and programs ask for, a wing for each kind of request: read, decide, act; nothing is printed."""
