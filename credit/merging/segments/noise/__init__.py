"""The kinds of noise: what looks at one state may differ in."""
