"""The audit: is the grouping sound, and does the credit say what it seems to say?"""
