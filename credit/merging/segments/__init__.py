"""The merge `segments`: texts that differ in what machines print, and in nothing else, are one state."""
