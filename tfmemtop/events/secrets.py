"""Which environment variables a recording keeps."""

from tfmemtop.settings import names_a_secret

KEPT_VARIABLES = ("TF_", "CUDA_", "XLA_", "NVIDIA_", "NCCL_", "TFMEMTOP_")
"""A recording keeps only variables whose names begin so and do not suggest a secret: people pass recordings on."""


def without_secrets(variables: dict[str, str]) -> dict[str, str]:
    """Return those of *variables* that a recording keeps."""
    return {
        name: value for name, value in variables.items() if name.startswith(KEPT_VARIABLES) and not names_a_secret(name)
    }
