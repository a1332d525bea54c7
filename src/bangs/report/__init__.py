"""The output of a run for users: CSV tables, a model card and an HTML page."""
