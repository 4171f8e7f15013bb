"""Complex event processing for Python."""
