"""Stock of a collection: what it has, what it lacks, and what that makes impossible."""
