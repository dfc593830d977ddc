"""The file of a store in which its user overrules which texts are one state."""
