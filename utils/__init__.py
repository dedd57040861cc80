"""The shared module of *Learning to Align*: what the notebooks build, importable."""
