"""Mean reward in small made-up worlds, of the service and of Vowpal Wabbit beside it, clicks only."""
