"""Options of a command line as settings: ``--index FOLDER``, the form of other commands, means ``index=FOLDER``.

>>> as_settings(["--index", "outputs/index", "--k=3", "Why is $2>1$?"], ["index", "k"])
['index=outputs/index', 'k=3', 'Why is $2>1$?']
>>> as_settings(["--workers", "2", "--log", "--k=3"], ["workers"])
['workers=2', '--log', '--k=3']
"""

from __future__ import annotations

from collections.abc import Sequence


def as_settings(words: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Return the words, with options of ``keys`` rewritten as settings."""
    options = {f"--{key}" for key in keys}
    out: list[str] = []
    for word in words:
        if out and out[-1] in options:
            out[-1] = f"{out[-1][2:]}={word}"
        else:
            out.append(word[2:] if "=" in word and word.partition("=")[0] in options else word)
    return out
