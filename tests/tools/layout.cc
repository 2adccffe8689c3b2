// Prints where TensorFlow keeps what tfmemtop/agent/layouts.py lists, as its headers have it.

#define GOOGLE_CUDA 1  // for the GPU's half of the headers, which needs no CUDA

#include <array>
#include <atomic>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

// After the standard library, which is not to be opened.
#define private public
#define protected public
#include "tensorflow/core/common_runtime/bfc_allocator.h"
#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
#include "tensorflow/core/common_runtime/process_state.h"

using Pool = tensorflow::BFCAllocator;
using Stats = tsl::AllocatorStats;
using Region = Pool::AllocationRegion;
using Condition = decltype(Pool::retry_helper_.memory_returned_);
using Gpus = tensorflow::GPUProcessState;
static_assert(__builtin_offsetof(Pool::RegionManager, regions_) == 0);

#define PLACE(name, type, member) std::printf("%s %zu\n", name, __builtin_offsetof(type, member))
#define SIZE(name, type) std::printf("%s %zu\n", name, sizeof(type))

int main() {
  PLACE("environment", Pool, retry_helper_.env_);
  // nsync's condition variable, in TensorFlow before 2.18, has the pointer to those who wait behind its flags.
  std::printf("waiters %zu\n", __builtin_offsetof(Pool, retry_helper_.memory_returned_) + sizeof(Condition) - 8);
  PLACE("retries", Pool, opts_.allow_retry_on_failure);
  PLACE("name", Pool, name_);
  PLACE("limit", Pool, memory_limit_);
  PLACE("stats", Pool, stats_);
  PLACE("regions", Pool, region_manager_);
  PLACE("chunks", Pool, chunks_);
  PLACE("allocations", Stats, num_allocs);
  PLACE("in_use", Stats, bytes_in_use);
  PLACE("peak", Stats, peak_bytes_in_use);
  PLACE("limit_told", Stats, bytes_limit);
  PLACE("pool", Stats, pool_bytes);
  PLACE("peak_pool", Stats, peak_pool_bytes);
  SIZE("stats_size", Stats);
  SIZE("chunk_size", Pool::Chunk);
  PLACE("chunk_bytes", Pool::Chunk, size);
  PLACE("chunk_requested", Pool::Chunk, requested_size);
  PLACE("chunk_id", Pool::Chunk, allocation_id);
  PLACE("chunk_address", Pool::Chunk, ptr);
  PLACE("chunk_bin", Pool::Chunk, bin_num);
  SIZE("region_size", Region);
  PLACE("region_address", Region, ptr_);
  PLACE("region_bytes", Region, memory_size_);
  PLACE("cpus", tensorflow::ProcessState, cpu_allocators_);
  PLACE("gpus", Gpus, gpu_allocators_);
  PLACE("hosts", Gpus, gpu_host_allocators_);
  SIZE("part_size", Gpus::AllocatorParts);
  PLACE("part_allocator", Gpus::AllocatorParts, allocator);
}
