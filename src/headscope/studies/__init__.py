"""Studies: analyses that need training, gradients or many passes. One folder per study."""
