"""Parts of training that fine-tuning and pretraining share."""
