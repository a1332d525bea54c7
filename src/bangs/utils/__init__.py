"""Things any program needs: files, signals, devices, determinism, safe CSV and text, checks of settings."""
