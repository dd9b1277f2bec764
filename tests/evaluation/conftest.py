"""What several evaluation tests use."""
