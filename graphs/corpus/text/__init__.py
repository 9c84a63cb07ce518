"""Text of posts: markup, formulas in it, sentences, placeholders."""
