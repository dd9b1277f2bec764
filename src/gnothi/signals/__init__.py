"""How uncertain a model is about what it says; higher is less certain.

``kinds`` has one file per signal, ``registry`` the signals by name, ``gate`` the threshold.
"""
