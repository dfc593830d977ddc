"""How often a group saw what is rarest in each of its states."""
