"""Policies that stand on other libraries; a library is not imported before it is needed."""
