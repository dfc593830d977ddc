"""Looks at states: visits, and which of them are certainly of one state."""
