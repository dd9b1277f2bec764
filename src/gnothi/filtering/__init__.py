"""What is worth keeping, and which answer to trust."""
