"""Settings of an experiment that trains in seconds."""

TINY = [
    "data=jsonl",
    "model.hidden_dim=16",
    "model.projection_dim=8",
    "model.num_layers=2",
    "model.num_bases=4",
    "train.batch_size=8",
    "train.device=cpu",
    "workers=1",
]
