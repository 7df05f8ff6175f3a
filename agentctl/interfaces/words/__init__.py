"""How facts are put into words and pictures, for the command line and the screen: text that is safe to show."""
