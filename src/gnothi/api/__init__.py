"""What ``import gnothi`` offers, one file per verb. Users take it from ``gnothi`` itself."""
