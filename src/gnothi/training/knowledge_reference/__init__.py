"""Which training questions a model knows, told by a run (SKR, section 3): ``train``."""

from gnothi.training.knowledge_reference.build import train

__all__ = ["train"]
