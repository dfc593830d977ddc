"""Does evidence rank definitions of a state as their worth to learning does?"""
