"""The usual servers by name: an address and where its key is, nothing else. What a server can do is found out, not listed."""

from __future__ import annotations

from dataclasses import dataclass

OPENAI = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Server:
    """``address`` is where it is asked unless the setting ``model.base_url`` or the environment variable ``variable`` says
    otherwise. ``key`` is the variable that holds its key, empty for one that takes none, ``header`` the one that it is sent
    in. ``versioned`` names a query parameter and the variable that holds its value, where one is set; the address then ends
    with ``versioned_path``, else with ``path``. ``{model}`` in it is the model's name."""

    address: str = ""
    variable: str = ""
    key: str = ""
    header: str = "Authorization"
    path: str = ""
    versioned: tuple[str, str] | None = None
    versioned_path: str = ""


SERVERS = {
    "openai": Server(OPENAI, "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "ollama": Server("http://127.0.0.1:11434/v1"),
    "lmstudio": Server("http://127.0.0.1:1234/v1"),
    "azure": Server(
        variable="AZURE_OPENAI_ENDPOINT",
        key="AZURE_OPENAI_API_KEY",
        header="api-key",
        path="/openai/v1",
        versioned=("api-version", "OPENAI_API_VERSION"),
        versioned_path="/openai/deployments/{model}",
    ),
}
