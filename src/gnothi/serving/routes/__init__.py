"""What can be asked over HTTP, one file for each kind; ``routes(context)`` in each gives its part of the table."""
