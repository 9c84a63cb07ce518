"""Figures of a report: scores, geometry, heat maps."""
