"""Training a model to say whether it knows (SKILL-RAG, sections 4.1 and 4.2; arXiv 2509.20377, an unreviewed preprint).

``answers`` samples what the model answers to training questions, ``reward`` and ``advantage`` are the paper's arithmetic,
``stages`` trains; ``train`` does all of it. Importing any of them loads neither torch nor trl.
"""

from gnothi.training.self_knowledge.job import TrainableKnower

train = TrainableKnower.train_from
