"""Time as the engine sees it: the order of events and what is due."""
