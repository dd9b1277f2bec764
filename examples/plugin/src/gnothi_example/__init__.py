"""What one package can add to Gnothi: a method, a signal and a retriever, each named by an entry point in pyproject.toml."""
