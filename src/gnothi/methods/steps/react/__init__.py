"""What ReAct needs and nothing else does: pages to browse, and the form of its turns."""
