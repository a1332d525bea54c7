"""The facts that flow between the parts: types, random streams, metrics and checks."""
