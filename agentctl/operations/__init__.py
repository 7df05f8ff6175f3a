"""One verb a module: read, decide, act; a frozen result; nothing is printed here."""
