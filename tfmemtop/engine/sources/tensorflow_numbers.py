"""The names of TensorFlow's numbers for types of tensors, and of ours for what memory is for."""

# ``DataType`` of tensorflow/core/framework/types.proto, by its number.
_DTYPES = (
    *("", "float32", "float64", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool", "qint8"),
    *("quint8", "qint32", "bfloat16", "qint16", "quint16", "uint16", "complex128", "float16", "resource", "variant"),
    *("uint32", "uint64", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz"),
    *("int4", "uint4", "int2", "uint2", "float4_e2m1fn"),
)
_REFERENCE = 100  # is added to the number for a reference

# Of probe/window.h.
_REGIONS = ("", "output", "temp", "persist", "dynamic")


def dtype_name(number: int) -> str:
    """TensorFlow's name of a type, such as ``float32``; empty if it gave none."""
    number = number - _REFERENCE if number > _REFERENCE else number
    return _DTYPES[number] if number < len(_DTYPES) else f"type {number}"


def region_name(number: int) -> str:
    """What the memory is for: ``output``, ``temp``, ``persist`` or ``dynamic``; empty for anything else."""
    return _REGIONS[number] if number < len(_REGIONS) else ""
