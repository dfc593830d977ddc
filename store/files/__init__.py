"""Files that appear whole or not at all: atomic writing, locks between processes, digests."""
