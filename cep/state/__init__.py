"""Memory: what rules remember, as text, and where it is kept."""
