"""Copies of a store, on this machine or in object storage."""
