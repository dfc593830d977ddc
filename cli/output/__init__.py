"""How the command line prints."""
