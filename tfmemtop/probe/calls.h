// Finds for each run of a function the thread that calls it and waits for its end.
//
// A thread that calls a `tf.function` from Python executes it eagerly (`EagerExecute` with `is_func=1`), and waits. The
// run itself (`FunctionRun`) begins within that time, in the same thread. Runs outside such a time are left out: tf.data
// begins runs and does not wait for them. A session's run (`SessionRun`) is waited for, too.

#ifndef TFMEMTOP_PROBE_CALLS_H_
#define TFMEMTOP_PROBE_CALLS_H_

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace {

struct CallRow {
  int64_t at_ns, run;
  uint32_t thread, rest;
};

class Calls {
 public:
  // The next three functions note an event: the time in which a thread executes a function eagerly, the beginning of a
  // function's run, and that of a session's run.
  void Executed(uint32_t thread, int64_t begin, int64_t end) {
    if (executed_[thread].size() < kMost) executed_[thread].push_back({begin, end});
  }

  void Began(uint32_t thread, int64_t at_ns, int64_t run) {
    if (run != 0 && began_.size() < kMost) began_.push_back({at_ns, run, thread, 0});
  }

  void Session(uint32_t thread, int64_t at_ns, int64_t run) {
    if (run != 0 && sessions_.size() < kMost) sessions_.push_back({at_ns, run, thread, 0});
  }

  // The calls by the time of their beginning, at most kMost of them.
  std::vector<CallRow> Made() {
    for (auto& [thread, times] : executed_) {
      std::sort(times.begin(), times.end(), [](const Time& a, const Time& b) { return a.begin < b.begin; });
    }
    std::vector<CallRow> made = sessions_;
    for (const CallRow& run : began_) {
      if (IsWithin(executed_[run.thread], run.at_ns)) made.push_back(run);
    }
    std::sort(made.begin(), made.end(), [](const CallRow& a, const CallRow& b) { return a.at_ns < b.at_ns; });
    if (made.size() > kMost) made.resize(kMost);
    return made;
  }

 private:
  struct Time {
    int64_t begin, end;
  };

  static constexpr size_t kMost = 1 << 16;

  // If these times are nested, the innermost one may have ended already. Then the run counts as not waited for. This is
  // rare: Python code that a function calls has to call another function.
  static bool IsWithin(const std::vector<Time>& times, int64_t at_ns) {
    auto next = std::upper_bound(times.begin(), times.end(), at_ns,
                                 [](int64_t at, const Time& time) { return at < time.begin; });
    return next != times.begin() && at_ns <= std::prev(next)->end;
  }

  std::unordered_map<uint32_t, std::vector<Time>> executed_;
  std::vector<CallRow> began_, sessions_;
};

}  // namespace

#endif  // TFMEMTOP_PROBE_CALLS_H_
