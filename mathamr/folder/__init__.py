"""Folders of mathematical documents as posts: LaTeX, Markdown, notebooks, HTML and archives of arXiv."""
