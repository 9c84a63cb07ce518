"""Local web page: search in a browser, with formulas typeset by the bundled KaTeX."""
