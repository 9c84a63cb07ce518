"""Training of an encoder on pairs of posts: :func:`mathamr.training.graph.trainer.train`."""
