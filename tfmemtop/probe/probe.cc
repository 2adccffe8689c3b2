// Reads TensorFlow's allocators from inside the process that trains.
//
// It is built on demand against the TensorFlow into which it is loaded, and called through ctypes. It only reads:
// no function creates, changes, resets or allocates from an allocator, and none lets an exception out.
// In a forked child every function refuses: there, locks may be held by threads that do not exist any more.
// Every structure begins with its own size, which the caller fills in; sizes that differ are refused.

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "headers.h"
#include "log_lines.h"
#include "looking.h"
#include "pools.h"
#include "threads.h"
#include "window_calls.h"

namespace {

constexpr uint32_t kVersion = 5;

struct Stats {
  uint64_t size;
  int64_t in_use, peak, pool, peak_pool, limit, allocations, largest_allocation;
  int64_t physical;  // CUDA's ordinal
  char name[64];
};

struct Taken {
  uint64_t size;
  Stats now;
  int64_t high, samples, growths, lost;
  Growth growth[kGrowths];
};

std::atomic<bool> stopping{false}, running{false};
std::atomic<bool> risen{false};  // a peak that was awaited has been reached

struct Figures {
  int64_t in_use, peak, pool;
};

// Stores the highest figure, and notes a pool that grew or shrank. The caller holds the slot's lock, and has read the
// figures under it: otherwise older figures might come after newer ones. TensorFlow does not use that lock.
void Observe(Slot* slot, const Figures& now) {
  int64_t high = now.in_use;
  // A peak that has risen since the last look was reached in between, however short it was.
  if (slot->peak != kUnknown && now.peak > slot->peak) high = std::max(high, now.peak);
  slot->high = std::max(slot->high, high);
  slot->peak = now.peak;
  if (now.peak > slot->awaited) {
    slot->awaited = INT64_MAX;
    risen = true;
  }
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

// The thread has the script's own priority. With a lower one, the script might wait for an allocator's lock that this
// thread holds while the system does not run it.
void* Sample(void* period_ns) {
  const int64_t period = reinterpret_cast<intptr_t>(period_ns);
  pthread_setname_np(pthread_self(), "tfmemtop");
  int64_t next = Now();
  while (!stopping.load(std::memory_order_relaxed)) {
    Looking([] {
      for (int kind : {kGpu, kPinned, kCpu}) {
        for (int index = 0; Slot* slot = SlotOf(kind, index); index++) {
          // Only allocators that a reader has found before.
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
#ifdef TFMEMTOP_WINDOWS
    if (risen.exchange(false)) OpenAwaited();
#endif
    // Readings that were missed, for example while the machine slept, are not made up for. There is always a pause:
    // where readings wait for the processor or for a lock, readings without a pause would make that worse.
    next = std::max(next + period, Now() + period / 2);
    timespec until{next / 1000000000, next % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  running.store(false, std::memory_order_release);
  return nullptr;
}

// Waits a twentieth of a second at most, so as not to delay the end of the process.
void Stop() {
#ifdef TFMEMTOP_WINDOWS
  AwaitNone();
#endif
  stopping.store(true);
  for (int tries = 0; running.load(std::memory_order_acquire) && tries < 50; tries++) Pause(1000000);
#ifdef TFMEMTOP_WINDOWS
  End(kByExit);  // does nothing in a forked child, where a thread that does not exist any more may hold the lock
#endif
}

// At exit, functions that were registered last are called first. So the thread is stopped before TensorFlow's static
// objects are destroyed. This library's own destructors would come last of all.
__attribute__((constructor)) void Loaded() {
  pthread_atfork(Forking, ForkedParent, ForkedChild);
  std::atexit(Stop);
}

}  // namespace

extern "C" {

TFMEMTOP_API uint32_t tfmemtop_version() { return kVersion; }

// The number of GPU allocators that TensorFlow has made.
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

// A reading, and what the sampler has observed since the last one.
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

// Starts the thread that samples every allocator that has been read before, `hz` times a second.
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

// 1 once the thread has ended, 0 if it is still busy and will end later.
TFMEMTOP_API int tfmemtop_sampler_stop() {
  return Guarded([] {
    Stop();
    return running.load() ? kNothing : kDone;
  });
}

// Appends to the file `path`, from now on, the lines that TensorFlow logs about an allocator that finds no room.
TFMEMTOP_API int tfmemtop_keep_log_lines(const char* path) {
  return Looking([=] { return path == nullptr ? kRefused : KeepLogLines(path); });
}

}  // extern "C"
