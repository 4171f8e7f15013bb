"""The language: rule text in, checked rules out. Knows nothing of running them."""
