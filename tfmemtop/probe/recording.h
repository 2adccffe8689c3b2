// The recording of TensorFlow's events: begins, drains and ends it, and measures what it costs.
//
// Only one recording is possible in a process, and the script's own profilers have priority: none begins while one of
// them is on, and Halt() ends it at once when one is about to start.

#ifndef TFMEMTOP_PROBE_RECORDING_H_
#define TFMEMTOP_PROBE_RECORDING_H_

#include "headers.h"
#include "tsl/profiler/lib/traceme.h"
#include "tsl/profiler/lib/traceme_encode.h"
#include "window.h"

namespace tsl::profiler {

// Its own header includes much.
class ProfilerLock {
 public:
  static bool HasActiveSession();
};

}  // namespace tsl::profiler

namespace {

using TraceMes = tsl::profiler::TraceMeRecorder;

// Consume() returns the events that were recorded until now, while the threads go on recording. It is a private member.
// If a thread ends after the first such call, the events that it has recorded since the last call are lost. The pools'
// own figures then show that something is missing.
constexpr auto ConsumeMember();
template <auto consume>
struct OpenRecorder {
  friend constexpr auto ConsumeMember() { return consume; }
};
template struct OpenRecorder<&TraceMes::Consume>;

constexpr int kLevel = 2;  // the level at which allocators record events
constexpr int kTrials = 64;

// The one recording of this process.
struct Recording {
  std::mutex mutex;
  std::atomic<bool> on{false};
  std::atomic<bool> started{false};  // from before TensorFlow begins to record until after it has stopped
  std::atomic<int> forbidden{0};
  std::atomic<int64_t> closed{kOpen};
  std::vector<TraceMes::Events> left;  // the events that Halt() has collected
};

struct Progress {
  std::atomic<bool> running{false};
  std::atomic<bool> asked{false};  // whether all that was recorded until now is to be written at once
  std::mutex mutex;
  Told told{};
};

// Never destroyed: the window's thread may still run after static objects are destroyed.
Recording& recording = *new Recording;
Progress& progress = *new Progress;

// Ends the recording; the window's thread writes what was recorded. The first call sets the reason.
void Halt(int64_t why) {
  std::lock_guard<std::mutex> lock(recording.mutex);
  if (!recording.on) return;
  recording.on = false;
  recording.closed = why;
  TraceMes::Events events = TraceMes::Stop();
  recording.started = false;
  recording.left.push_back(std::move(events));
}

// The same for callers that are not within Looking() yet. So no fork comes in between, which would leave TensorFlow's
// lock of its recorders held in the child. And if memory has run out, the exception does not end the script.
void End(int64_t why) {
  Looking([=] {
    Halt(why);
    return kDone;
  });
}

// In a forked child no thread collects the events. So the recording is switched off there, without any lock.
void ForgetRecording() {
  if (recording.started.exchange(false)) tsl::profiler::internal::g_trace_level.store(TraceMes::kTracingDisabled);
  recording.on = false;
  progress.running = false;
}

// Begins the recording, if that is possible now; returns whether it has begun.
bool Begin() {
  std::lock_guard<std::mutex> lock(recording.mutex);
  if (recording.forbidden > 0 || recording.on || tsl::profiler::ProfilerLock::HasActiveSession()) return false;
  recording.left.clear();
  recording.closed = kOpen;
  recording.started = true;
  // Without a profiler's session it is the hook that has let TensorFlow record, while this library was built.
  recording.on = TraceMes::Active(kLevel) || TraceMes::Start(kLevel);
  recording.started = recording.on.load();
  return recording.on;
}

// Returns what has been recorded; `*open` is set to whether more will follow.
std::vector<TraceMes::Events> Drain(bool* open) {
  std::lock_guard<std::mutex> lock(recording.mutex);
  std::vector<TraceMes::Events> events;
  events.swap(recording.left);
  *open = recording.on;
  if (*open) events.push_back((ConsumeMember())());
  return events;
}

// The time that a thread of the script needs to record one allocation, and one other event, as measured here.
struct Costs {
  double memory_ns = 0, other_ns = 0;

  void Measure() {
    const int64_t began = Clock(CLOCK_MONOTONIC);
    for (int i = 0; i < kTrials; i++) {
      tsl::profiler::TraceMe::InstantActivity(
          [i] {
            return tsl::profiler::TraceMeEncode(
                std::string("tfmemtop"), {{"allocator_name", "GPU_0_bfc"}, {"bytes_reserved", i},
                {"bytes_allocated", 123456789}, {"bytes_available", 1234567890123}, {"fragmentation", 0.0123},
                {"peak_bytes_in_use", 123456789}, {"requested_bytes", 1234567}, {"allocation_bytes", 1234567},
                {"addr", 140502742820928}, {"tf_op", "StatefulPartitionedCall/gradient_tape/model/conv2d/Conv2D"},
                {"id", 123456789012345}, {"region_type", "output"}, {"data_type", 1}, {"shape", "[64,56,56,256]"}});
          },
          kLevel);
    }
    const int64_t between = Clock(CLOCK_MONOTONIC);
    for (int i = 0; i < kTrials; i++) tsl::profiler::TraceMe activity("tfmemtop", kLevel);
    memory_ns = static_cast<double>(between - began) / kTrials;
    other_ns = static_cast<double>(Clock(CLOCK_MONOTONIC) - between) / kTrials;
  }
};

}  // namespace

#endif  // TFMEMTOP_PROBE_RECORDING_H_
