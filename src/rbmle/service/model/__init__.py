"""What front ends and the learner share: model settings, features, limits, and what is published."""
