"""The report of an experiment: tables, figures, pages."""
