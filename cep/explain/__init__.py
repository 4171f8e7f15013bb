"""What a rule means and how it is run, shown to people: words, trees, diagrams."""
