"""MathLive, the formula editor of the page, from a file that comes with this package.

>>> import hashlib
>>> hashlib.sha256((FOLDER / "mathlive.min.mjs").read_bytes()).hexdigest()
'48a272a1c347c31eecefaf9baa0c317866f76fbcb83f9b2911a14e11c90e409f'

``mathlive/`` is the npm package ``mathlive`` 0.111.1, cut down to its program and its licence (MIT). Its fonts equal
those of KaTeX, so the editor uses ``katex/fonts``. Its sounds are left out.

MathLive sets HTML with style attributes, which the page's Content-Security-Policy forbids. The editor is therefore a
document in a frame (``page/editor.html``), with a policy that admits style attributes. Posts are shown outside it.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).with_name("mathlive")
EDITOR = "/editor.html"  # path of the document in the frame
