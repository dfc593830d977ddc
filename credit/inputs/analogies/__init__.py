"""What untried actions would do, judged by similar states."""
