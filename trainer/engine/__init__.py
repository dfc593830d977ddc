"""The training engine: forward, backward and optimizer step, on one device or several."""
