"""Provenance: what credit columns were made of, by which version, and whether they are current."""
