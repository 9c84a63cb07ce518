"""Rankings that are learned from judgments of other years (:mod:`mathamr.ranking.left_out`)."""
