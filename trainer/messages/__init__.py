"""Token ids of logs that have messages only, by the chat template of the model."""
