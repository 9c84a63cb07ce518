"""Places of documents in the layout of an index, found by their ids.

>>> places = Places(np.array(["154", "255", "7"]))
>>> places.of(["7", "154"])
array([2, 0])
>>> places.find(["9", "255", "2551"])[1]
array([False,  True, False])
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphs.errors import UnknownPostError
from graphs.ids import array_of


class Places:
    """Places by id; ``post_ids`` (N,) has at least one document, and each once. They are sorted when first asked for.

    No dictionary: one of a million ids takes more memory than a model.
    """

    def __init__(self, post_ids: np.ndarray) -> None:
        self._post_ids = post_ids
        self._by_id: np.ndarray | None = None  # places by ascending id

    def find(self, post_ids: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of documents, and whether they are there; any place for one that is not."""
        if self._by_id is None:
            self._by_id = np.argsort(self._post_ids, kind="stable")
        wanted = array_of(post_ids)
        # Of ids longer than any here the beginning is searched for: else numpy would copy all ids to make them as wide.
        sorted_places = np.searchsorted(self._post_ids, wanted.astype(self._post_ids.dtype), sorter=self._by_id)
        places = self._by_id[np.minimum(sorted_places, len(self._post_ids) - 1)]
        return places, self._post_ids[places] == wanted

    def of(self, post_ids: Sequence[str]) -> np.ndarray:
        """Return the places of documents; :class:`UnknownPostError` for one that is not there."""
        places, found = self.find(post_ids)
        if not found.all():
            missing = np.flatnonzero(~found)
            raise UnknownPostError(f"the index holds no post {post_ids[missing[0]]} ({len(missing)} such)")
        return places
