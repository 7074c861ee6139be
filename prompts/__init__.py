"""Where a model comes from, how its chat template renders, what state the prompt leaves the model in."""
