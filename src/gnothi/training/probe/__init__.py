"""A gate of one forward pass, learnt from the model's own mistakes: ``train``. Importing it loads no torch."""

from gnothi.training.probe.job import train

__all__ = ["train"]
