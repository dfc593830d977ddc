"""What only some estimators read, one folder for each input."""
