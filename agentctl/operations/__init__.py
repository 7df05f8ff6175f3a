"""What commands, tools and API calls do, one wing per kind of request: read, decide, act. Nothing is printed here."""
