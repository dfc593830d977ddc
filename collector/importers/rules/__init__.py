"""The rules that options name: for the states, the group, the success and the rewards."""
