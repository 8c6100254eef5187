"""What the paper shows, and the trials that show it again."""
