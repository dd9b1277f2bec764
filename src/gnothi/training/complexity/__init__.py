"""How much retrieval a question takes, learnt from a run (Adaptive-RAG, section 3): ``train``."""

from gnothi.training.complexity.build import train

__all__ = ["train"]
