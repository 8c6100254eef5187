"""Exports, imports, backups and checks of a log, and evaluations on it."""
