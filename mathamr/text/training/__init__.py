"""Parts that fine-tuning and pretraining share."""
