"""The vLLM backend: spec ``vllm:PATH-OR-HUB-ID``. Nothing here is imported before such a model is asked for."""
