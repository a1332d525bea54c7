"""Suites: TOML files that list the experiments behind a table or figure."""
