"""Training a reader: a model learns to answer from what a method puts before it (IEKR, section 4.3; arXiv 2408.12979).

``material`` keeps what the method would ask, ``assess`` asks as the method would, ``stages`` trains; ``train`` does all
of it. Importing any of them loads neither torch nor trl.
"""

from gnothi.training.reader.job import TrainableReader

train = TrainableReader.train_from
