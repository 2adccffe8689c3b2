// Reads TensorFlow's allocators from inside the process that trains.
//
// Built on demand against the TensorFlow it is loaded into, called through ctypes. It only looks:
// no function creates, changes, resets or allocates from an allocator, none lets an exception out,
// and none is willing in a forked child, where locks may be held by threads that are no more.
// Every structure begins with its own size, which the caller fills in; sizes that differ are refused.

#define GOOGLE_CUDA 1  // for the GPU's half of TensorFlow's headers, which needs no CUDA

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>

#include "looking.h"
#include "map.h"
#if defined(TFMEMTOP_POOL_LOCK) && !defined(TFMEMTOP_NO_WINDOWS)  // the latter where TensorFlow cannot be had to record
#define TFMEMTOP_WINDOWS
#include "recorder.h"
#endif
#include "tensorflow/core/common_runtime/process_state.h"
#ifndef TFMEMTOP_NO_GPU  // set where TensorFlow was built without
#include "tensorflow/core/common_runtime/gpu/gpu_id_manager.h"
#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
#endif

namespace {

using tensorflow::Allocator;
using tensorflow::ProcessState;

constexpr uint32_t kVersion = 2;
constexpr int kGpu = 0, kPinned = 1, kCpu = 2;
constexpr int kGpus = 64;
constexpr int kGrowths = 64;
constexpr int64_t kUnknown = -1;

struct Stats {
  uint64_t size;
  int64_t in_use, peak, pool, peak_pool, limit, allocations, largest_allocation;
  int64_t physical;  // CUDA's ordinal
  int64_t has_map;
  char name[64];
};

struct Growth {
  int64_t at_ns;  // CLOCK_MONOTONIC
  int64_t before, after;
};

struct Taken {
  uint64_t size;
  Stats now;
  int64_t high, samples, growths, lost;
  Growth growth[kGrowths];
};

struct Slot {
  std::mutex mutex;
  std::atomic<Allocator*> allocator{nullptr};
  int64_t high = kUnknown, samples = 0, peak = kUnknown, pool = kUnknown;
  int64_t growths = 0, lost = 0;
  Growth growth[kGrowths];
};

// The thread may outlive static destruction.
static_assert(std::is_trivially_destructible_v<Slot>);

Slot slots[kGpus + 2];
std::atomic<bool> stopping{false}, running{false};

// TensorFlow's getters create what is not there yet, so the lists behind them are read instead,
// under their own locks. They are protected members, open to whoever derives.
#ifndef TFMEMTOP_NO_GPU
struct Gpus : tensorflow::GPUProcessState {
  static Allocator* Find(int index, bool pinned) {
    GPUProcessState* state = GPUProcessState::singleton();
    tensorflow::mutex_lock lock(state->*(&Gpus::mu_));
    auto& list = state->*(pinned ? &Gpus::gpu_host_allocators_ : &Gpus::gpu_allocators_);
    return index < static_cast<int>(list.size()) ? list[index].allocator.get() : nullptr;
  }

  static int Count() { return std::min(singleton()->NumGPUAllocators(), kGpus); }

  // CUDA's ordinal.
  static int64_t Ordinal(int index) {
    tsl::PlatformDeviceId id;
    auto status = tensorflow::GpuIdManager::TfToPlatformDeviceId(tsl::TfDeviceId(index), &id);
    return status.ok() ? id.value() : kUnknown;
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

// The allocator, if TensorFlow has made it. It then lives as long as the process.
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

struct Figures {
  int64_t in_use, peak, pool;
};

// Keeps the highest and notes a pool that grew or shrank. Under the slot's lock, as the reading of the figures
// itself, lest older ones come after newer ones. TensorFlow knows nothing of that lock.
void Observe(Slot* slot, const Figures& now) {
  int64_t high = now.in_use;
  // A peak that rose since the last look was reached in between, however short it was.
  if (slot->peak != kUnknown && now.peak > slot->peak) high = std::max(high, now.peak);
  slot->high = std::max(slot->high, high);
  slot->peak = now.peak;
  slot->samples++;
  if (slot->pool != kUnknown && now.pool != slot->pool) {
    if (slot->growths < kGrowths) {
      slot->growth[slot->growths++] = {Now(), slot->pool, now.pool};
    } else {
      slot->lost++;
    }
  }
  slot->pool = now.pool;
}

bool Read(int kind, int index, Allocator* allocator, Stats* out) {
  auto stats = allocator->GetStats();
  if (!stats) return false;
  out->in_use = stats->bytes_in_use;
  out->peak = stats->peak_bytes_in_use;
  out->pool = stats->pool_bytes ? *stats->pool_bytes : kUnknown;
  out->peak_pool = stats->peak_pool_bytes ? *stats->peak_pool_bytes : kUnknown;
  out->limit = stats->bytes_limit ? *stats->bytes_limit : kUnknown;
  out->allocations = stats->num_allocs;
  out->largest_allocation = stats->largest_alloc_size;
  out->physical = kind == kGpu ? Gpus::Ordinal(index) : kUnknown;
  out->has_map = dynamic_cast<BFCAllocator*>(allocator) != nullptr;
  std::string name = allocator->Name();
  std::memset(out->name, 0, sizeof out->name);
  std::memcpy(out->name, name.data(), std::min(name.size(), sizeof out->name - 1));
  return true;
}

void ForkedChild() {
  forked.store(true);
  running.store(false);
#ifdef TFMEMTOP_WINDOWS
  ForgetRecording();
#endif
}

// Of the script's own priority: a lower one would have the script wait for an allocator's lock that a thread
// holds which the system does not run.
void* Sample(void* period_ns) {
  const int64_t period = reinterpret_cast<intptr_t>(period_ns);
  pthread_setname_np(pthread_self(), "tfmemtop");
  int64_t next = Now();
  while (!stopping.load(std::memory_order_relaxed)) {
    Looking([] {
      for (int kind : {kGpu, kPinned, kCpu}) {
        for (int index = 0; Slot* slot = SlotOf(kind, index); index++) {
          // Only those that somebody reads, and has found before.
          Allocator* allocator = slot->allocator.load(std::memory_order_acquire);
          if (allocator == nullptr) continue;
          std::lock_guard<std::mutex> lock(slot->mutex);
          auto stats = allocator->GetStats();
          if (!stats) continue;
          Observe(slot, {stats->bytes_in_use, stats->peak_bytes_in_use,
                         stats->pool_bytes ? *stats->pool_bytes : kUnknown});
        }
      }
      return kDone;
    });
    // What was missed, as while the machine slept, is not made up for. There is always a rest: where readings wait
    // for the processor or for a lock, one after the other would make that worse.
    next = std::max(next + period, Now() + period / 2);
    timespec until{next / 1000000000, next % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  running.store(false, std::memory_order_release);
  return nullptr;
}

// Waits a twentieth of a second at most: a process that ends is not held up.
void Stop() {
#ifdef TFMEMTOP_WINDOWS
  End(kByExit);  // not in a forked child: there the lock may be one of a thread that is no more
#endif
  stopping.store(true);
  for (int tries = 0; running.load(std::memory_order_acquire) && tries < 50; tries++) Pause(1000000);
}

// Starts a thread of ours, to which no signal of the script's goes.
bool StartThread(void* (*run)(void*), void* argument) {
  sigset_t all, before;
  sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, fault);
  // Inherited by the thread.
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, run, argument);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error == 0;
}

#ifdef TFMEMTOP_WINDOWS
BFCAllocator* FindPool(int kind, int index) { return dynamic_cast<BFCAllocator*>(Find(kind, index)); }

void* RunWindow(void* window) {
  pthread_setname_np(pthread_self(), "tfmemtop");
  std::unique_ptr<Window> owned(static_cast<Window*>(window));
  owned->Run();
  owned.reset();
  progress.running.store(false, std::memory_order_release);
  return nullptr;
}
#endif

// At exit what was registered last comes first: the thread is stopped before what is static in TensorFlow is
// destroyed. This library's own destructors would come last of all.
__attribute__((constructor)) void Loaded() {
  pthread_atfork(Forking, ForkedParent, ForkedChild);
  std::atexit(Stop);
}

}  // namespace

extern "C" {

#define TFMEMTOP_API __attribute__((visibility("default")))

TFMEMTOP_API uint32_t tfmemtop_version() { return kVersion; }

// GPU allocators that TensorFlow has made.
TFMEMTOP_API int tfmemtop_gpus() {
  return Looking([] { return Gpus::Count(); });
}

TFMEMTOP_API int tfmemtop_stats(int kind, int index, Stats* out) {
  return Looking([=] {
    if (out == nullptr || out->size != sizeof *out) return kRefused;
    Allocator* allocator = Find(kind, index);
    return allocator != nullptr && Read(kind, index, allocator, out) ? kDone : kNothing;
  });
}

// A reading, and what the sampler saw since the last one.
TFMEMTOP_API int tfmemtop_take(int kind, int index, Taken* out) {
  return Looking([=] {
    if (out == nullptr || out->size != sizeof *out) return kRefused;
    Allocator* allocator = Find(kind, index);
    if (allocator == nullptr) return kNothing;
    Slot* slot = SlotOf(kind, index);
    std::lock_guard<std::mutex> lock(slot->mutex);
    if (!Read(kind, index, allocator, &out->now)) return kNothing;
    Observe(slot, {out->now.in_use, out->now.peak, out->now.pool});
    out->high = slot->high;
    out->samples = slot->samples;
    out->growths = slot->growths;
    out->lost = slot->lost;
    std::copy(slot->growth, slot->growth + slot->growths, out->growth);
    slot->high = out->now.in_use;
    slot->samples = slot->growths = slot->lost = 0;
    return kDone;
  });
}

TFMEMTOP_API int tfmemtop_map(int kind, int index, Map* map) {
  return Looking([=] {
    if (map == nullptr || map->size != sizeof *map) return kRefused;
    Allocator* allocator = Find(kind, index);
    if (allocator == nullptr) return kNothing;
    BFCAllocator* pool = dynamic_cast<BFCAllocator*>(allocator);
    if (pool == nullptr) return kNoMap;
    const int64_t began = Now();
    mapping.store(true);
    struct Done {
      ~Done() { mapping.store(false); }
    } done;
    Condense(pool, map);
    map->cost_ns = Now() - began;
    return kDone;
  });
}

// Starts the thread that samples every allocator somebody has read, `hz` times a second.
TFMEMTOP_API int tfmemtop_sampler_start(int hz) {
  return Guarded([=] {
    if (hz < 1 || hz > 10000 || running.exchange(true)) return kRefused;
    stopping.store(false);
    const intptr_t period_ns = 1000000000 / hz;
    if (!StartThread(Sample, reinterpret_cast<void*>(period_ns))) {
      running.store(false);
      return kFailed;
    }
    return kDone;
  });
}

// 1 once the thread has ended, 0 if it is busy still and will end.
TFMEMTOP_API int tfmemtop_sampler_stop() {
  return Guarded([] {
    Stop();
    return running.load() ? kNothing : kDone;
  });
}

// Opens a window, which a thread of its own then sees to. 0 if the script profiles or another window is open.
TFMEMTOP_API int tfmemtop_window_start(const Wanted* wanted) {
#ifdef TFMEMTOP_WINDOWS
  return Looking([=] {
    if (wanted == nullptr || wanted->size != sizeof *wanted) return kRefused;
    if (wanted->places < 1 || wanted->places > kPlaces || wanted->pause_ns < 100000) return kRefused;
    if (progress.running.exchange(true)) return kNothing;
    std::unique_ptr<Window> window;
    try {
      window.reset(new Window(*wanted, FindPool));
    } catch (...) {
      progress.running.store(false);
      return kFailed;
    }
    if (!Begin()) {
      progress.running.store(false);
      return kNothing;
    }
    try {
      window->Open();
    } catch (...) {
      Halt(kByMemory);
      progress.running.store(false);
      return kFailed;
    }
    if (!StartThread(RunWindow, window.get())) {
      Halt(kByMemory);
      progress.running.store(false);
      return kFailed;
    }
    window.release();
    return kDone;
  });
#else
  return kNoMap;
#endif
}

// How far the newest window is; 0 if there was none.
TFMEMTOP_API int tfmemtop_window_told(Told* out) {
#ifdef TFMEMTOP_WINDOWS
  return Guarded([=] {
    if (out == nullptr || out->size != sizeof *out) return kRefused;
    const bool running = progress.running.load(std::memory_order_acquire);
    std::lock_guard<std::mutex> lock(progress.mutex);
    *out = progress.told;
    if (out->size == 0) return kNothing;
    out->running = running;
    return kDone;
  });
#else
  return kNoMap;
#endif
}

// Ends the recording of a window at once; its thread goes on to write what there is.
TFMEMTOP_API int tfmemtop_window_end(int64_t why) {
#ifdef TFMEMTOP_WINDOWS
  return Looking([=] {
    Halt(why);
    return kDone;
  });
#else
  return kNoMap;
#endif
}

// From now on no window may be opened, and one that is open ends; or again they may, after as many calls of each.
TFMEMTOP_API int tfmemtop_window_forbid(int forbid) {
#ifdef TFMEMTOP_WINDOWS
  return Looking([=] {
    {
      std::lock_guard<std::mutex> lock(recording.mutex);
      // One that was begun before this was loaded may be undone without a call: that is no leave for later.
      recording.forbidden = std::max(0, recording.forbidden + (forbid ? 1 : -1));
    }
    if (forbid) Halt(kByProfiler);
    return kDone;
  });
#else
  return kNoMap;
#endif
}

}  // extern "C"
