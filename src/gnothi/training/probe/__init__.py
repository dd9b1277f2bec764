"""A gate of one forward pass, learnt from the model's own mistakes: ``train``. Importing it loads no torch."""

from gnothi.training.probe.job import TrainableProbe

train = TrainableProbe.train_from
