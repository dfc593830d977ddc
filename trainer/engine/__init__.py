"""What updates the weights, on one device or several."""
