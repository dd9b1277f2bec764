"""From files to passages: one module per format, each a generator that holds little however large the file."""
