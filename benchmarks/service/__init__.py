"""Load on the decision service, side by side with an echo on the same stack."""
