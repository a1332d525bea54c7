"""What a person looks at after a run: tables, a model card and one page."""
