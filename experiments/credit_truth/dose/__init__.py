"""How much of the difference between credits is dose: how much of the data carries credit."""
