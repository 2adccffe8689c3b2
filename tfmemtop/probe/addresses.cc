// Finds where the buffer of an eager tensor or of a variable lies.
//
// No operation runs, and nothing is waited for. TensorFlow's own way, `tf.experimental.dlpack`, waits until a GPU has
// done all its work; to read a variable's value is an operation, which may copy the variable.
//
// The headers of TensorFlow's tensors take the compiler three times as long as all else. So this is compiled beside the
// rest, and left out where this TensorFlow's classes are others.

#include "addresses.h"

#include <string>

#include "tensorflow/c/eager/abstract_tensor_handle.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"

namespace {

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

}  // namespace

extern "C" uint64_t tfmemtop_buffer_of(const HandleFunctions* functions, const void* eager_tensor) {
  auto* handle = reinterpret_cast<AbstractTensorHandle* (*)(const void*)>(functions->handle_of)(eager_tensor);
  if (handle == nullptr || !Kinds::IsEager(handle)) return 0;
  if (reinterpret_cast<int (*)(const void*)>(functions->type)(handle) != kLocal) return 0;
  if (!reinterpret_cast<bool (*)(const void*)>(functions->is_ready)(handle)) return 0;
  const tensorflow::Tensor* tensor = nullptr;
  using TensorOf = absl::Status (*)(const void*, const tensorflow::Tensor**);
  if (!reinterpret_cast<TensorOf>(functions->tensor)(handle, &tensor).ok() || tensor == nullptr) return 0;
  if (tensor->dtype() != tensorflow::DT_RESOURCE) return reinterpret_cast<uint64_t>(tensor->data());
  if (tensor->NumElements() != 1 || tensor->data() == nullptr) return 0;
  return BufferOf(*static_cast<const tensorflow::ResourceHandle*>(tensor->data()));
}
