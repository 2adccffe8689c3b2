// The headers of TensorFlow that declare its allocators and its recorder of events.
//
// They include Eigen, protobuf and much else that nothing here uses, which takes most of a compiler's time. With
// TFMEMTOP_FEW_HEADERS, what they include is left out by its include guards, and the names that they need are declared
// here. Where a release of TensorFlow needs more than that, the probe is compiled without this macro.

#ifndef TFMEMTOP_PROBE_HEADERS_H_
#define TFMEMTOP_PROBE_HEADERS_H_

#define GOOGLE_CUDA 1  // for the GPU's half of TensorFlow's headers, which needs no CUDA

#ifdef TFMEMTOP_FEW_HEADERS
#include <cstdint>
#include <set>
#include <string>
#include <type_traits>

#include "absl/base/config.h"

#define ABSL_STATUS_STATUS_H_
#define ABSL_STATUS_STATUSOR_H_
#define XLA_TSL_FRAMEWORK_NUMERIC_TYPES_H_
#define XLA_TSL_FRAMEWORK_TYPE_TRAITS_H_
#define XLA_TSL_PLATFORM_ENV_H_
#define TENSORFLOW_TSL_PLATFORM_BFLOAT16_H_
#define TENSORFLOW_TSL_PLATFORM_ML_DTYPES_H_
#define TENSORFLOW_TSL_PLATFORM_TSTRING_H_
#define TENSORFLOW_CORE_FRAMEWORK_NUMERIC_TYPES_H_
#define TENSORFLOW_CORE_FRAMEWORK_TYPE_TRAITS_H_
#define TENSORFLOW_CORE_LIB_CORE_STATUS_H_
#define TENSORFLOW_CORE_PLATFORM_ENV_H_
#define TENSORFLOW_CORE_PLATFORM_TSTRING_H_
#define ABSL_CONTAINER_FLAT_HASH_SET_H_
#define tensorflow_2fcore_2fprotobuf_2fconfig_2eproto_2epb_2eh

namespace absl {
template <class T>
class flat_hash_set;
ABSL_NAMESPACE_BEGIN
// It has a destructor, so functions return it in memory. An error's text is never freed; no error is expected.
class Status {
 public:
  ~Status() {}

 private:
  std::uintptr_t rep_;
};
template <class T>
class StatusOr;
ABSL_NAMESPACE_END
}  // namespace absl
namespace tsl {
template <class T>
struct is_simple_type : std::true_type {};
class Env;
class tstring;
class bfloat16;
class float4_e2m1fn;
class float8_e3m4;
class float8_e4m3;
class float8_e4m3b11fnuz;
class float8_e4m3fn;
class float8_e4m3fnuz;
class float8_e5m2;
class float8_e5m2fnuz;
class float8_e8m0fnu;
class int1;
class int2;
class int4;
class uint1;
class uint2;
class uint4;
}  // namespace tsl
namespace tensorflow {
class GPUOptions {};
using tsl::tstring;
}  // namespace tensorflow
#endif

#if __has_include("xla/tsl/framework/bfc_allocator.h")
#include "xla/tsl/framework/bfc_allocator.h"
#include "xla/tsl/profiler/backends/cpu/traceme_recorder.h"
#else
#include "tsl/framework/bfc_allocator.h"
#include "tsl/profiler/backends/cpu/traceme_recorder.h"
#endif
#include "tensorflow/core/common_runtime/process_state.h"
#ifndef TFMEMTOP_NO_GPU  // defined where TensorFlow was built without GPUs
#include "tensorflow/core/common_runtime/gpu/gpu_id_manager.h"
#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
#endif

#endif  // TFMEMTOP_PROBE_HEADERS_H_
