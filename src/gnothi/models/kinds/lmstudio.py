"""Models that LM Studio serves on this machine, or elsewhere with ``model.base_url``."""

from gnothi.models.kinds.openai import LMStudioSettings, remote_scheme

SCHEME = remote_scheme(
    "lmstudio",
    {"lmstudio:NAME": "a model that LM Studio serves, at 127.0.0.1:1234 unless model.base_url says otherwise"},
    LMStudioSettings,
)
