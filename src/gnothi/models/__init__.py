"""What speaks. ``load_model`` turns a model spec into a LanguageModel; importing this package loads no heavy library."""

from gnothi.models.registry import (
    MODELS,
    check_model,
    is_remote,
    listed,
    load_model,
    model_settings,
    settings_class,
    settings_listed,
)
from gnothi.models.remote.settings import RemoteSettings
from gnothi.models.scheme import LAB, LAB_FOLDER
from gnothi.models.settings import CallCache, ModelSettings, VLLMSettings

__all__ = [
    "LAB",
    "LAB_FOLDER",
    "MODELS",
    "CallCache",
    "ModelSettings",
    "RemoteSettings",
    "VLLMSettings",
    "check_model",
    "is_remote",
    "listed",
    "load_model",
    "model_settings",
    "settings_class",
    "settings_listed",
]
