"""How a teacher is trained and made honest."""
