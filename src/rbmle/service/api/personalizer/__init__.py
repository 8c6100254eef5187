"""Azure Personalizer's dialect."""
