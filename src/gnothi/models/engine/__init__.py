"""Parts of the in-process backend. Everything here may import torch; nothing outside imports it before it is needed."""
