"""The local web page: search in a browser, with formulas typeset by the KaTeX that comes along."""
