"""Questions over HTTP: an endpoint that speaks OpenAI's API and tells why it searched or trusted itself."""
