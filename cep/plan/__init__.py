"""What to look for: checked rules in, automata out. The plan holds no events and runs nothing."""
