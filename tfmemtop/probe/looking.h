// How the probe reads TensorFlow's objects: never during a fork, and without letting an exception out.

#ifndef TFMEMTOP_PROBE_LOOKING_H_
#define TFMEMTOP_PROBE_LOOKING_H_

#include <time.h>

#include <atomic>
#include <cstdint>

#define TFMEMTOP_API __attribute__((visibility("default")))  // a function that Python calls

namespace {

// The results of a function; above 0 its work is done.
constexpr int kDone = 1, kNothing = 0, kRefused = -1, kFailed = -2, kNone = -3;

constexpr int64_t kForkWaits_ns = 50000000;

std::atomic<bool> forked{false};
std::atomic<int> looking{0}, forking{0};

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

// A forked child has the locks as they were, but not the threads that would have released them. It would wait for ever
// for an allocator that a thread of the probe was just reading. So no thread of the probe reads while another thread
// forks, and a fork waits for threads that read. It waits for a twentieth of a second at most, since TensorFlow itself
// may keep such a thread waiting.
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
  while (looking.load() > 0 && Now() - began < kForkWaits_ns) Pause(20000);
}

void ForkedParent() { forking.fetch_sub(1); }

// Runs `work` so that no exception passes, and never in a forked child.
template <class Work>
int Guarded(Work work) {
  if (forked.load(std::memory_order_relaxed)) return kRefused;
  try {
    return work();
  } catch (...) {
    return kFailed;
  }
}

// The same for work that takes locks of TensorFlow's.
template <class Work>
int Looking(Work work) {
  return Guarded([&] {
    Look look;
    return work();
  });
}

}  // namespace

#endif  // TFMEMTOP_PROBE_LOOKING_H_
