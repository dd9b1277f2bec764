"""Training a cross-encoder to find the facts a question needs (IEKR, Du and Zhao 2024, section 4.2).

``labels`` says which facts of a question's neighbourhood are positives and negatives, ``pairs`` collects them, ``stages``
trains; ``train`` does all of it. Importing any of them loads neither torch nor sentence-transformers.
"""

from gnothi.training.reranker.job import TrainableReranker

train = TrainableReranker.train_from
