"""SelfTrainingClassifier: its inputs, its saved form, its predictions and explanations."""
