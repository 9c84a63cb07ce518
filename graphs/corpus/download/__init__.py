"""Files of a collection from the web."""

#: Parts of the published tree, in the order in which an experiment needs them.
PARTS = ("collection", "formulas", "topics", "qrels", "runs")
