"""Which passages help or harm answers to training questions (KEQA, section 3.4): ``train``."""

from gnothi.training.utility_reference.job import TrainableReference

train = TrainableReference.train_from
