"""Does a policy learn faster from a credit, and does it carry over to boards it never saw?"""
