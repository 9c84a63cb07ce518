"""Counts with their nouns, in messages and reports.

>>> counted(1, "post"), counted(2_500, "post"), counted(2, "query")
('1 post', '2,500 posts', '2 queries')
"""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural for all but 1."""
    plural = noun.removesuffix("y") + "ies" if noun.endswith("ry") else noun + "s"
    return f"{number:,} {noun if number == 1 else plural}"
