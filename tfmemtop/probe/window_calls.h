// What Python calls of the windows: to open one, ask how far it is, end it, and forbid them.
//
// Where TensorFlow cannot be had to record, each call says so and does nothing.

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
#if defined(TFMEMTOP_POOL_LOCK) && !defined(TFMEMTOP_NO_WINDOWS)  // the latter where TensorFlow cannot be had to record
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

}  // namespace

extern "C" {

// Opens a window, which a thread of its own then sees to. 0 if the script profiles or another window is open.
TFMEMTOP_API int tfmemtop_window_start(const Wanted* wanted) {
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
}

// How far the newest window is; 0 if there was none.
TFMEMTOP_API int tfmemtop_window_told(Told* out) {
  return Guarded([=] {
    if (out == nullptr || out->size != sizeof *out) return kRefused;
    const bool running = progress.running.load(std::memory_order_acquire);
    std::lock_guard<std::mutex> lock(progress.mutex);
    *out = progress.told;
    if (out->size == 0) return kNothing;
    out->running = running;
    return kDone;
  });
}

// Ends the recording of a window at once; its thread goes on to write what there is.
TFMEMTOP_API int tfmemtop_window_end(int64_t why) {
  return Looking([=] {
    Halt(why);
    return kDone;
  });
}

// From now on no window may be opened, and one that is open ends; or again they may, after as many calls of each.
TFMEMTOP_API int tfmemtop_window_forbid(int forbid) {
  return Looking([=] {
    {
      std::lock_guard<std::mutex> lock(recording.mutex);
      // One that was begun before this was loaded may be undone without a call: that is no leave for later.
      recording.forbidden = std::max(0, recording.forbidden + (forbid ? 1 : -1));
    }
    if (forbid) Halt(kByProfiler);
    return kDone;
  });
}

}  // extern "C"

#else

extern "C" {

TFMEMTOP_API int tfmemtop_window_start(const void*) { return kNoMap; }
TFMEMTOP_API int tfmemtop_window_told(void*) { return kNoMap; }
TFMEMTOP_API int tfmemtop_window_end(int64_t) { return kNoMap; }
TFMEMTOP_API int tfmemtop_window_forbid(int) { return kNoMap; }

}  // extern "C"

#endif  // TFMEMTOP_WINDOWS

#endif  // TFMEMTOP_PROBE_WINDOW_CALLS_H_
