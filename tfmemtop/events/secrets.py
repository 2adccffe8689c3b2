"""What recordings keep of an environment."""

from tfmemtop.settings import names_a_secret

KEPT_VARIABLES = ("TF_", "CUDA_", "XLA_", "NVIDIA_", "NCCL_", "TFMEMTOP_")
"""Recordings are made to be passed on. They keep only variables whose names begin so and do not speak of a secret."""


def without_secrets(variables: dict[str, str]) -> dict[str, str]:
    """Those of *variables* that a recording keeps."""
    return {
        name: value for name, value in variables.items() if name.startswith(KEPT_VARIABLES) and not names_a_secret(name)
    }
