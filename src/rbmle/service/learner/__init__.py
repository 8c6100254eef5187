"""The learner: reads the log, learns, and publishes models and reports."""
