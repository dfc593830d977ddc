"""Which states of a group are one node: rules, then a merge, both under the guard."""
