"""Language models as policies: prompts and answers."""
