"""Network architectures along the run axis; how they are trained is not known here."""
