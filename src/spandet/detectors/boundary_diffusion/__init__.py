"""DiffusionNER: entities are denoised out of random spans."""
