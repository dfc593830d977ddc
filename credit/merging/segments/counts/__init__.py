"""Whether a value tells states apart: counts over looks."""
