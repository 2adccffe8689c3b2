// Finds TensorFlow's allocators without making any, and defines what the probe keeps of each.

#ifndef TFMEMTOP_PROBE_POOLS_H_
#define TFMEMTOP_PROBE_POOLS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <type_traits>

#include "headers.h"

namespace {

using tsl::Allocator;
using tensorflow::ProcessState;

constexpr int kGpu = 0, kPinned = 1, kCpu = 2;
constexpr int kGpus = 64;
constexpr int kGrowths = 64;
constexpr int64_t kUnknown = -1;

struct Growth {
  int64_t at_ns;  // CLOCK_MONOTONIC
  int64_t before, after;
};

struct Slot {
  std::mutex mutex;
  std::atomic<Allocator*> allocator{nullptr};
  int64_t high = kUnknown, samples = 0, peak = kUnknown, pool = kUnknown;
  int64_t growths = 0, lost = 0;
  int64_t awaited = INT64_MAX;  // a peak above this opens the window that is awaited
  Growth growth[kGrowths];
};

// The sampler's thread may still run after static objects are destroyed.
static_assert(std::is_trivially_destructible_v<Slot>);

Slot slots[kGpus + 2];

// TensorFlow's getters create an allocator that is not there yet. So the lists behind them are read instead, under
// their own locks. The lists are protected members, which derived classes may read.
#ifndef TFMEMTOP_NO_GPU
struct Gpus : tensorflow::GPUProcessState {
  static Allocator* Find(int index, bool pinned) {
    GPUProcessState* state = GPUProcessState::singleton();
    tensorflow::mutex_lock lock(state->*(&Gpus::mu_));
    auto& list = state->*(pinned ? &Gpus::gpu_host_allocators_ : &Gpus::gpu_allocators_);
    return index < static_cast<int>(list.size()) ? list[index].allocator.get() : nullptr;
  }

  static int Count() { return std::min(singleton()->NumGPUAllocators(), kGpus); }

  // CUDA's ordinal. TensorFlow leaves it as it is if it has no such device.
  static int64_t Ordinal(int index) {
    tsl::PlatformDeviceId id(kUnknown);
    (void)tensorflow::GpuIdManager::TfToPlatformDeviceId(tsl::TfDeviceId(index), &id);
    return id.value();
  }
};
#else
struct Gpus {
  static Allocator* Find(int, bool) { return nullptr; }
  static int Count() { return 0; }
  static int64_t Ordinal(int) { return kUnknown; }
};
#endif

struct Cpus : ProcessState {
  static Allocator* Find() {
    ProcessState* state = ProcessState::singleton();
    tensorflow::mutex_lock lock(state->*(&Cpus::mu_));
    auto& list = state->*(&Cpus::cpu_allocators_);
    return list.empty() ? nullptr : list[0];
  }
};

Slot* SlotOf(int kind, int index) {
  if (kind == kGpu && 0 <= index && index < kGpus) return &slots[index];
  if ((kind == kPinned || kind == kCpu) && index == 0) return &slots[kGpus + kind - kPinned];
  return nullptr;
}

// The allocator, if TensorFlow has made it; else null. It exists until the process ends.
Allocator* Find(int kind, int index) {
  Slot* slot = SlotOf(kind, index);
  if (slot == nullptr) return nullptr;
  Allocator* known = slot->allocator.load(std::memory_order_acquire);
  if (known == nullptr) {
    known = kind == kCpu ? Cpus::Find() : Gpus::Find(index, kind == kPinned);
    slot->allocator.store(known, std::memory_order_release);
  }
  return known;
}

}  // namespace

#endif  // TFMEMTOP_PROBE_POOLS_H_
