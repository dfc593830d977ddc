"""The entities that the steps of search tasks mention."""
