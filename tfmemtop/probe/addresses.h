// Finds where the buffer of an eager tensor or of a variable lies.
//
// No operation runs, and nothing is waited for. TensorFlow's own way, `tf.experimental.dlpack`, waits until a GPU has
// done all its work; to read a variable's value is an operation, which may copy the variable.

#ifndef TFMEMTOP_PROBE_ADDRESSES_H_
#define TFMEMTOP_PROBE_ADDRESSES_H_

#include <cstdint>

#include "looking.h"
#ifndef TFMEMTOP_NO_ADDRESSES  // defined where this TensorFlow's classes are others
#include "tensorflow/c/eager/abstract_tensor_handle.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#endif

namespace {

// Functions that TensorFlow's Python modules export. This library is not linked against these.
struct HandleFunctions {
  uint64_t size;
  void* handle_of;  // EagerTensor_Handle(const PyObject*)
  void* type;       // TensorHandle::Type() const
  void* is_ready;   // TensorHandle::IsReady() const
  void* tensor;     // TensorHandle::Tensor(const Tensor**) const
};

HandleFunctions handle_functions{};

#ifndef TFMEMTOP_NO_ADDRESSES

using tensorflow::AbstractTensorHandle;

struct Kinds : AbstractTensorHandle {
  // Else it is a tensor of a custom device, which has no such functions.
  static bool IsEager(const AbstractTensorHandle* handle) { return handle->getKind() == kEager; }
};

constexpr int kLocal = 0;  // of TensorHandle::HandleType

// A variable's lock is not waited for: an operation that assigns to the variable holds it for as long as it runs.
uint64_t BufferOf(const tensorflow::ResourceHandle& resource) {
  const std::string& type = resource.maybe_type_name();
  if (type != "tensorflow::Var" && type != "N10tensorflow3VarE") return 0;
  auto* variable = static_cast<tensorflow::Var*>(resource.resource().get());
  if (variable == nullptr || !variable->mu()->try_lock_shared()) return 0;
  const uint64_t address =
      variable->is_initialized ? reinterpret_cast<uint64_t>(variable->tensor()->data()) : 0;
  variable->mu()->unlock_shared();
  return address;
}

uint64_t BufferOf(const void* eager_tensor) {
  const auto& functions = handle_functions;
  auto* handle = reinterpret_cast<AbstractTensorHandle* (*)(const void*)>(functions.handle_of)(eager_tensor);
  if (handle == nullptr || !Kinds::IsEager(handle)) return 0;
  if (reinterpret_cast<int (*)(const void*)>(functions.type)(handle) != kLocal) return 0;
  if (!reinterpret_cast<bool (*)(const void*)>(functions.is_ready)(handle)) return 0;
  const tensorflow::Tensor* tensor = nullptr;
  using TensorOf = absl::Status (*)(const void*, const tensorflow::Tensor**);
  if (!reinterpret_cast<TensorOf>(functions.tensor)(handle, &tensor).ok() || tensor == nullptr) return 0;
  if (tensor->dtype() != tensorflow::DT_RESOURCE) return reinterpret_cast<uint64_t>(tensor->data());
  if (tensor->NumElements() != 1 || tensor->data() == nullptr) return 0;
  return BufferOf(*static_cast<const tensorflow::ResourceHandle*>(tensor->data()));
}

#endif

}  // namespace

extern "C" {

// Takes TensorFlow's functions, which must be those of this process's TensorFlow.
TFMEMTOP_API int tfmemtop_handle_functions(const HandleFunctions* functions) {
  return Guarded([=] {
#ifdef TFMEMTOP_NO_ADDRESSES
    return kNoMap;
#else
    if (functions == nullptr || functions->size != sizeof *functions) return kRefused;
    handle_functions = *functions;
    return kDone;
#endif
  });
}

// The address of the buffer of a tensor, or of the variable of a resource; 0 where it cannot be read at once.
// The caller holds Python's lock and a reference to `eager_tensor`, an object of TensorFlow's class EagerTensor.
TFMEMTOP_API uint64_t tfmemtop_address(const void* eager_tensor) {
  uint64_t address = 0;
#ifndef TFMEMTOP_NO_ADDRESSES
  Guarded([&] {
    // A fork waits for this, and this does not wait for a fork: Python's lock is held meanwhile.
    looking.fetch_add(1);
    struct Done {
      ~Done() { looking.fetch_sub(1); }
    } done;
    if (forking.load() == 0 && handle_functions.tensor != nullptr) address = BufferOf(eager_tensor);
    return kDone;
  });
#endif
  return address;
}

}  // extern "C"

#endif  // TFMEMTOP_PROBE_ADDRESSES_H_
