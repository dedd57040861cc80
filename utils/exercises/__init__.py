"""Exercises that answer: an engine, and a module of data for each notebook."""
