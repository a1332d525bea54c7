"""What we learn on: graphs, their files, splits and propagation."""
