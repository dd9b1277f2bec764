"""What models are asked to do: tasks with instructions and demonstrations, as data."""
