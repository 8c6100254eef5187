"""The log for others to read: as Parquet, for Vowpal Wabbit, and as a list of what is wrong with it."""
