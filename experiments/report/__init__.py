"""Report of an experiment: tables, figures, pages."""
