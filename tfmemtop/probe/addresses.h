// Finds where the buffer of an eager tensor or of a variable lies, where `addresses.cc` could be compiled.

#ifndef TFMEMTOP_PROBE_ADDRESSES_H_
#define TFMEMTOP_PROBE_ADDRESSES_H_

#include <cstdint>

// Functions that TensorFlow's Python modules export. This library is not linked against these.
struct HandleFunctions {
  uint64_t size;
  void* handle_of;  // EagerTensor_Handle(const PyObject*)
  void* type;       // TensorHandle::Type() const
  void* is_ready;   // TensorHandle::IsReady() const
  void* tensor;     // TensorHandle::Tensor(const Tensor**) const
};

// The address of the buffer of a tensor, or of the variable of a resource; 0 where it cannot be read at once.
extern "C" __attribute__((weak)) uint64_t tfmemtop_buffer_of(const HandleFunctions* functions, const void* tensor);

#endif  // TFMEMTOP_PROBE_ADDRESSES_H_
