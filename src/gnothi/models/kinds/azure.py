"""Deployments of Azure OpenAI."""

from gnothi.models.kinds.openai import AzureSettings, remote_scheme

SCHEME = remote_scheme(
    "azure",
    {
        "azure:NAME": "a deployment of Azure OpenAI, at AZURE_OPENAI_ENDPOINT with the key in AZURE_OPENAI_API_KEY; "
        "OPENAI_API_VERSION, where it is set, chooses the older addresses"
    },
    AzureSettings,
)
