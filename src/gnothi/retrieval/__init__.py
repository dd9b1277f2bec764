"""What is out there: indexes of passages, and the ways to fill them.

Importing this package loads no search engine; ``gnothi.retrieval.registry`` opens an index by its name.
"""
