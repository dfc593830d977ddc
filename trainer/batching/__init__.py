"""The plan of a training, its micro-batches, and the reader that fills them."""
