"""Text track: statements, queries and pairs from LaTeX and posts, and text encoders trained on them."""
