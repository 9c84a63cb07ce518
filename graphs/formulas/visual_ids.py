"""Posts by the visual ids of their formulas, from the formula files of a collection.

    posts_with_visual_ids(corpus.formulas(), {"695948"})      # {'9253', ...}

Formulas with the same appearance share a visual id, and Task 2 judges visual ids.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from graphs.corpus.files import FormulaFiles
from graphs.formulas.published import rows_of


def posts_with_visual_ids(
    files: FormulaFiles, visual_ids: Container[str], progress: Callable[[int], None] | None = None
) -> frozenset[str]:
    """Return the posts that have a formula with one of ``visual_ids``, by one pass over one representation.

    Formulas of comments, and those that are listed as missing in their post, do not count.

    The representation with the most tables is read: if tables are missing, their posts are in no other table of that
    kind.

    Args:
        files: formula files of the collection.
        visual_ids: ids as in the files and judgments.
        progress: function called with the number of formulas read since its last call.
    """
    posts: set[str] = set()
    for path in max(files.latex, files.opt, files.slt, key=len):  # ties: the smallest files
        count = 0
        for row in rows_of(path):
            count += 1
            if not row.missing and row.visual_id is not None and row.visual_id in visual_ids:
                posts.add(row.post_id)
        if progress is not None:
            progress(count)
    return frozenset(posts)
