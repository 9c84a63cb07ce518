"""Systems: ways to learn and search the same posts, one module each (:mod:`mathamr.systems.system`)."""
