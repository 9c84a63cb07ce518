"""Text of posts: markup, formulas in it, sentences, placeholders, near-identical texts."""
