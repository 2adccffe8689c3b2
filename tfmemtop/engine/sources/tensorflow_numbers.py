"""The names of TensorFlow's numbers for types of tensors, and of the probe's numbers for what memory is used for."""

# ``DataType`` of tensorflow/core/framework/types.proto, by its number.
_DTYPES = (
    *("", "float32", "float64", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool", "qint8"),
    *("quint8", "qint32", "bfloat16", "qint16", "quint16", "uint16", "complex128", "float16", "resource", "variant"),
    *("uint32", "uint64", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz"),
    *("int4", "uint4", "int2", "uint2", "float4_e2m1fn"),
)
_REFERENCE = 100  # TensorFlow adds this to the number of a type for a reference to it

# The names of RegionOf() in probe/window.h, by its numbers.
_REGIONS = ("", "output", "temp", "persist", "dynamic")


def dtype_name(number: int) -> str:
    """Return TensorFlow's name of a type, such as ``float32``; empty if TensorFlow gave no type."""
    number = number - _REFERENCE if number > _REFERENCE else number
    return _DTYPES[number] if number < len(_DTYPES) else f"type {number}"


def region_name(number: int) -> str:
    """Return what the memory is used for: ``output``, ``temp``, ``persist`` or ``dynamic``; empty for anything else."""
    return _REGIONS[number] if number < len(_REGIONS) else ""
