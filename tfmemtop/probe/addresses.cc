// Finds where the buffer of an eager tensor or of a variable lies. This library is called through ctypes.
//
// It reads TensorFlow's own classes, whose headers take a compiler as long as all of the probe. So it is a library of its
// own, which is built and loaded after the probe.

#include <dlfcn.h>
#include <pthread.h>

#include <cstdint>
#include <string>

#include "looking.h"
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

// Functions that TensorFlow's Python module exports. This library is not linked against them.
using HandleOf = AbstractTensorHandle* (*)(const void* eager_tensor);  // EagerTensor_Handle(const PyObject*)
using TypeOf = int (*)(const void*);                                   // TensorHandle::Type() const
using IsReady = bool (*)(const void*);                                 // TensorHandle::IsReady() const
using TensorOf = absl::Status (*)(const void*, const tensorflow::Tensor**);  // TensorHandle::Tensor(const Tensor**) const
HandleOf handle_of = nullptr;
TypeOf type_of = nullptr;
IsReady is_ready = nullptr;
TensorOf tensor_of = nullptr;

template <class Function>
bool Find(void* module, const char* name, Function* found) {
  *found = reinterpret_cast<Function>(dlsym(module, name));
  return *found != nullptr;
}

constexpr int kLocal = 0;  // of TensorHandle::HandleType

// A variable's lock is not waited for: an operation that assigns to the variable holds it for as long as it runs.
uint64_t OfVariable(const tensorflow::ResourceHandle& resource) {
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
  AbstractTensorHandle* handle = handle_of(eager_tensor);
  if (handle == nullptr || !Kinds::IsEager(handle) || type_of(handle) != kLocal || !is_ready(handle)) return 0;
  const tensorflow::Tensor* tensor = nullptr;
  if (!tensor_of(handle, &tensor).ok() || tensor == nullptr) return 0;
  if (tensor->dtype() != tensorflow::DT_RESOURCE) return reinterpret_cast<uint64_t>(tensor->data());
  if (tensor->NumElements() != 1 || tensor->data() == nullptr) return 0;
  return OfVariable(*static_cast<const tensorflow::ResourceHandle*>(tensor->data()));
}

__attribute__((constructor)) void Loaded() {
  pthread_atfork(Forking, ForkedParent, [] { forked.store(true); });
}

}  // namespace

extern "C" {

// Finds the functions in TensorFlow's Python module, which lies at `path` and has been loaded; this call loads nothing.
TFMEMTOP_API int tfmemtop_find_functions(const char* path) {
  void* module = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
  const bool found = module != nullptr && Find(module, "_Z18EagerTensor_HandlePK7_object", &handle_of) &&
                     Find(module, "_ZNK10tensorflow12TensorHandle4TypeEv", &type_of) &&
                     Find(module, "_ZNK10tensorflow12TensorHandle7IsReadyEv", &is_ready) &&
                     Find(module, "_ZNK10tensorflow12TensorHandle6TensorEPPKNS_6TensorE", &tensor_of);
  return found ? kDone : kNothing;
}

// The address of the buffer of a tensor, or of the variable of a resource; 0 where it cannot be read at once.
// The caller holds Python's lock and a reference to `eager_tensor`, an object of TensorFlow's class EagerTensor.
TFMEMTOP_API uint64_t tfmemtop_address(const void* eager_tensor) {
  uint64_t address = 0;
  Guarded([&] {
    // A fork waits for this, and this does not wait for a fork: Python's lock is held meanwhile.
    looking.fetch_add(1);
    struct Done {
      ~Done() { looking.fetch_sub(1); }
    } done;
    if (forked.load() == 0 && tensor_of != nullptr) address = BufferOf(eager_tensor);
    return kDone;
  });
  return address;
}

}  // extern "C"
