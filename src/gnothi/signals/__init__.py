"""How uncertain a model is about what it says: one file per signal, higher is less certain; ``threshold`` holds the gate."""
