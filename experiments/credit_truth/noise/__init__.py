"""What credit is worth where texts are noisy, by the way in which states are merged."""
