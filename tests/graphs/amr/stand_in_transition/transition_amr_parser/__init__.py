"""A stand-in for IBM's transition-amr-parser, from its documented interface."""
