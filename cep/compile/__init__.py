"""From plans to Python: expressions, and the module that runs a rule."""
