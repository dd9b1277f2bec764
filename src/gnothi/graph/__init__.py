"""Knowledge graphs: facts as evidence, found from the names that a text says. Importing this package loads nothing heavy."""
