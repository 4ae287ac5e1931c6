"""What a user calls: tensors, functions, lazy programs."""
