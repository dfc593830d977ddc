"""One iteration, from the steps that are read to the columns that are written."""
