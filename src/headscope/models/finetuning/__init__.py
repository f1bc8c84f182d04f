"""Fine-tuning: labelled examples, classifiers and taggers, the recipe, and the training loop."""
