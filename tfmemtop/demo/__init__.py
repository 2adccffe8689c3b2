"""The built-in training that ``tfmemtop demo`` watches."""
