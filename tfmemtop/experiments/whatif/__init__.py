"""What other settings would do: the recorded allocations, replayed in TensorFlow's own allocator."""
