"""The learner: it folds the log into a model."""
