"""Systems kept for search: what each family keeps in an index folder, and how it ranks a query from there."""
