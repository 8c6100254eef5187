"""Front ends: decide with the newest published model, and write to the log before they answer."""
