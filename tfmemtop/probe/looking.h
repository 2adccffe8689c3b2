// How the probe looks at what is TensorFlow's: one at a time with forks, and with no exception to the outside.

#ifndef TFMEMTOP_PROBE_LOOKING_H_
#define TFMEMTOP_PROBE_LOOKING_H_

#include <time.h>

#include <atomic>
#include <cstdint>

#define TFMEMTOP_API __attribute__((visibility("default")))  // what Python calls

namespace {

// What a function says about its work; above 0 it is done.
constexpr int kDone = 1, kNothing = 0, kRefused = -1, kFailed = -2, kNoMap = -3;

constexpr int64_t kForkWaits_ns = 50000000, kForkWaitsForMap_ns = 5000000000;

std::atomic<bool> forked{false};
std::atomic<int> looking{0}, forking{0};
std::atomic<bool> mapping{false};

int64_t Clock(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

int64_t Now() { return Clock(CLOCK_MONOTONIC); }

void Pause(long ns) {
  timespec pause{0, ns};
  nanosleep(&pause, nullptr);
}

// A child of fork has the locks as they were, and not the threads that would have released them: it would wait for
// ever for an allocator that one of ours was just asking. So nobody looks while another thread forks, and a fork
// waits for who looks; for a twentieth of a second at most, since TensorFlow may keep one of ours waiting itself,
// longer only for a map, which of a million chunks takes a third of a second by itself.
class Look {
 public:
  Look() {
    while (looking.fetch_add(1), forking.load() > 0) {
      looking.fetch_sub(1);
      Pause(100000);
    }
  }
  ~Look() { looking.fetch_sub(1); }
};

void Forking() {
  forking.fetch_add(1);
  const int64_t began = Now();
  while (looking.load() > 0 && Now() - began < (mapping.load() ? kForkWaitsForMap_ns : kForkWaits_ns)) Pause(20000);
}

void ForkedParent() { forking.fetch_sub(1); }

// Runs `work` where no exception passes, and never in a forked child.
template <class Work>
int Guarded(Work work) {
  if (forked.load(std::memory_order_relaxed)) return kRefused;
  try {
    return work();
  } catch (...) {
    return kFailed;
  }
}

// The same for what takes locks of TensorFlow's.
template <class Work>
int Looking(Work work) {
  return Guarded([&] {
    Look look;
    return work();
  });
}

}  // namespace

#endif  // TFMEMTOP_PROBE_LOOKING_H_
