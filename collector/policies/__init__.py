"""Policies that choose actions; one file each."""
