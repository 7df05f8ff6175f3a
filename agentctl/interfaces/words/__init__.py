"""How facts are put into words and pictures, for all surfaces: text that is safe to show."""
