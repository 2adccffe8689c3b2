"""The error texts for values of options: why a value is refused, in one sentence. Pure."""

NO_FILE_NAME = "the file's name is empty"


def no_gpu_list(text: str) -> str:
    """Return the error for *text* that is not a list of GPU numbers."""
    return f"{text!r} is not a list of GPUs such as 0,2; give numbers as nvidia-smi shows them"


def gpu_twice(text: str) -> str:
    """Return the error for a list that contains the same number twice."""
    return f"{text!r} names a GPU twice"


def no_seconds(text: str, least: float, most: float) -> str:
    """Return the error for *text* that is not a number of seconds, or is outside of its bounds."""
    return f"{text!r} is not a number of seconds from {least:g} to {most:g}"


def no_count(text: str, most: int) -> str:
    """Return the error for *text* that is not a whole number, or is outside of its bounds."""
    return f"{text!r} is not a whole number from 1 to {most}"


def no_port(text: str) -> str:
    """Return the error for *text* that is not a port."""
    return f"{text!r} is not a port such as 9400, or an address and a port such as 0.0.0.0:9400"


def no_address(text: str, port: str) -> str:
    """Return the error for *text* with a colon before the port, but no address before the colon."""
    return f"{text!r} has no address; 0.0.0.0:{port} is every address of this machine"


def no_brackets(text: str) -> str:
    """Return the error for an IPv6 address without brackets."""
    return f"{text!r}: an address with colons needs brackets, as in [::1]:9400"


def no_prom_file(text: str) -> str:
    """Return the error for the name of a file that node_exporter would not read."""
    return f"{text!r} does not end in .prom; node_exporter reads no other file"
