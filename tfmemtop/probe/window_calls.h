// The functions for windows that Python calls: open a window, read how far it is, end it, and forbid windows.
//
// Where TensorFlow cannot be made to record, each call does nothing and returns kNone.

#ifndef TFMEMTOP_PROBE_WINDOW_CALLS_H_
#define TFMEMTOP_PROBE_WINDOW_CALLS_H_

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>

#include "looking.h"
#include "pools.h"
#include "threads.h"
#ifndef TFMEMTOP_NO_WINDOWS  // defined where TensorFlow cannot record, or its pools cannot be copied
#define TFMEMTOP_WINDOWS
#include "recorder.h"
#endif

#ifdef TFMEMTOP_WINDOWS
namespace {

BFCAllocator* FindPool(int kind, int index) { return dynamic_cast<BFCAllocator*>(Find(kind, index)); }

void* RunWindow(void* window) {
  pthread_setname_np(pthread_self(), "tfmemtop");
  std::unique_ptr<Window> owned(static_cast<Window*>(window));
  owned->Run();
  owned.reset();
  progress.running.store(false, std::memory_order_release);
  return nullptr;
}

// The window that is opened as soon as the peak of one of its pools has risen; null if none is awaited.
std::atomic<Wanted*> awaited{nullptr};

void AwaitNone() { delete awaited.exchange(nullptr); }

}  // namespace

extern "C" {

// Opens a window, which then has a thread of its own. 0 if the script is profiling or another window is open.
TFMEMTOP_API int tfmemtop_window_start(const Wanted* wanted) {
  return Looking([=] {
    if (wanted == nullptr || wanted->size != sizeof *wanted) return kRefused;
    if (wanted->places < 1 || wanted->places > kPlaces || wanted->pause_ns < 100000) return kRefused;
    if (progress.running.exchange(true)) return kNothing;
    AwaitNone();
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
}

// Has a window opened as soon as the peak of one of its pools has risen by `percent`, and by `bytes`. Python would see
// that peak some 50 ms later, when the step that reached it may be over. 0 if the script is profiling or another window
// is open.
TFMEMTOP_API int tfmemtop_window_await(const Wanted* wanted, int64_t percent, int64_t bytes) {
  return Guarded([=] {
    if (wanted == nullptr || wanted->size != sizeof *wanted) return kRefused;
    if (progress.running) return kNothing;
    delete awaited.exchange(new Wanted(*wanted));
    for (int64_t i = 0; i < wanted->places; i++) {
      Slot* slot = SlotOf(wanted->place[i].kind, wanted->place[i].index);
      if (slot == nullptr) return kRefused;
      std::lock_guard<std::mutex> lock(slot->mutex);
      slot->awaited = slot->peak == kUnknown ? INT64_MAX : slot->peak + std::max(slot->peak / 100 * percent, bytes);
    }
    return kDone;
  });
}

void OpenAwaited() {
  std::unique_ptr<Wanted> wanted(awaited.exchange(nullptr));
  if (wanted) tfmemtop_window_start(wanted.get());
}

// How far the newest window is; 0 if there was none.
TFMEMTOP_API int tfmemtop_window_told(Told* out) {
  return Guarded([=] {
    if (out == nullptr || out->size != sizeof *out) return kRefused;
    const bool running = progress.running.load(std::memory_order_acquire);
    std::lock_guard<std::mutex> lock(progress.mutex);
    if (progress.told.size == 0) return kNothing;
    *out = progress.told;
    out->running = running;
    return kDone;
  });
}

// Has all that was recorded until now written to the file, which is complete then; the recording goes on.
TFMEMTOP_API int tfmemtop_window_complete() {
  return Guarded([] {
    progress.asked.store(true);
    return kDone;
  });
}

// Ends the recording of a window at once; its thread goes on to write what was recorded.
TFMEMTOP_API int tfmemtop_window_end(int64_t why) {
  return Looking([=] {
    AwaitNone();
    Halt(why);
    return kDone;
  });
}

// With `forbid`, no window may be opened from now on, and one that is open ends. Without it, one such call is undone:
// windows may be opened again after as many calls of each kind.
TFMEMTOP_API int tfmemtop_window_forbid(int forbid) {
  return Looking([=] {
    {
      std::lock_guard<std::mutex> lock(recording.mutex);
      // A profiler that began before this library was loaded may be undone here although it was never forbidden. The
      // count stays at 0 then: a lower count would permit windows when they are forbidden next.
      recording.forbidden = std::max(0, recording.forbidden + (forbid ? 1 : -1));
    }
    if (forbid) Halt(kByProfiler);
    return kDone;
  });
}

}  // extern "C"

#else

extern "C" {

TFMEMTOP_API int tfmemtop_window_start(const void*) { return kNone; }
TFMEMTOP_API int tfmemtop_window_await(const void*, int64_t, int64_t) { return kNone; }
TFMEMTOP_API int tfmemtop_window_told(void*) { return kNone; }
TFMEMTOP_API int tfmemtop_window_complete() { return kNone; }
TFMEMTOP_API int tfmemtop_window_end(int64_t) { return kNone; }
TFMEMTOP_API int tfmemtop_window_forbid(int) { return kNone; }

}  // extern "C"

#endif  // TFMEMTOP_WINDOWS

#endif  // TFMEMTOP_PROBE_WINDOW_CALLS_H_
