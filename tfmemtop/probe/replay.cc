// Replays the allocations of a training in TensorFlow's own BFC allocator, over memory that is not there.
//
// Built on demand as the probe is, against the same TensorFlow, and run as a process of its own. Reads from stdin what
// `replaying.py` writes, and writes a line for each question as soon as it is answered. No byte of the memory
// that is handed out is ever touched; what it takes is the allocator's own book-keeping, 1/32 of each pool.
//
// Exit status: 0 all answered, 2 the input is not understood, 3 not even the trace fits the memory that is allowed.

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "replay_pool.h"

namespace {

// Answers what happens under one setting and any limits.
class Setting {
 public:
  Setting(const Trace& trace, const Question& under)
      : trace_(trace), under_(under), granule_(std::max(kMiB, WholeMiB(trace.peak / 1024))) {}

  Outcome Ask(int64_t limit, bool waits, bool details = false) {
    if (under_.growth || limit < kAlwaysSplit) return Run(Pool(under_, limit), waits, details);
    // A region of the whole limit, of which only the beginning is ever used, is replayed as one that is smaller: so
    // large that its rest is always the largest free chunk, and always split, so that all goes as in the larger one.
    const int64_t enough = WholeMiB(trace_.peak * 5 / 2 + trace_.largest + kAlwaysSplit);
    const int64_t size = std::min(limit, enough);
    if (whole_ == nullptr || whole_->size() < size) {
      whole_ = nullptr;
      whole_ = std::make_unique<Pool>(under_, std::min(enough, size + size / 4));
    }
    whole_->SetLimit(size);
    Outcome found = Run(*whole_, waits, details);
    if (size == limit) return found;
    if (!found.fits || size < 2 * found.extent + trace_.largest + kAlwaysSplit) {
      return Run(Pool(under_, limit), waits, details);
    }
    found.pool = found.peak_pool = limit;
    found.largest_free += limit - size;
    return found;
  }

  // The smallest limits that pass in order, and by waiting. That a limit is enough says nothing certain of a larger
  // one, since regions then are others: so some above the first are looked at too, and some below the second.
  void Smallest(int64_t* surely, int64_t* at_least) {
    int64_t top = under_.growth ? WholeMiB(Ask(kUnlimited, false).peak_pool)
                                : WholeMiB(trace_.peak + kAlwaysSplit + trace_.largest);
    while (!Passes(top, false)) top = WholeMiB(top + top / 4);
    int64_t fails = (trace_.peak - 1) / kMiB * kMiB;
    for (bool sure = false; !sure;) {
      *surely = Halve(fails, top, false);
      sure = true;
      for (int64_t above = granule_; sure && above <= kLook * granule_ && *surely + above < top; above *= 2) {
        sure = Passes(*surely + above, false);
        if (!sure) fails = *surely + above;
      }
    }
    *at_least = Halve(std::min((trace_.largest - 1) / kMiB * kMiB, *surely - kMiB), *surely, true);
    for (int64_t below = 2 * granule_; below <= kLook * granule_ && below < *at_least; below *= 2) {
      if (!Passes(*at_least - below, true)) continue;
      *at_least -= below;
      below = granule_;
    }
  }

 private:
  static constexpr int64_t kLook = 64;

  bool Passes(int64_t limit, bool waits) { return Ask(limit, waits).fits; }

  // Between a limit that fails and one that passes, in whole MiB: one that passes while a granule less does not.
  int64_t Halve(int64_t fails, int64_t passes, bool waits) {
    while (passes - fails > granule_) {
      const int64_t middle = fails + (passes - fails) / kMiB / 2 * kMiB;
      (Passes(middle, waits) ? passes : fails) = middle;
    }
    return passes;
  }

  Outcome Run(Pool&& pool, bool waits, bool details) { return Run(pool, waits, details); }
  Outcome Run(Pool& pool, bool waits, bool details) {
    Replay replay(trace_, &pool);
    return waits ? replay.Waiting(details) : replay.InOrder(details);
  }

  const Trace& trace_;
  const Question under_;
  const int64_t granule_;
  std::unique_ptr<Pool> whole_;  // one region, for limits up to its size
};

void Tell(const char* what, const Outcome& found) {
  std::printf("%s %d %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld\n", what, found.fits,
              (long long)found.in_use, (long long)found.peak, (long long)found.pool, (long long)found.peak_pool,
              (long long)found.growths, (long long)found.largest_free, (long long)found.allocations,
              (long long)found.failed, (long long)found.asked, (long long)found.lacking, (long long)found.waits);
}

void Answer(const Question& question, Setting* setting) {
  if (question.kind == kSmallest) {
    int64_t surely = 0, at_least = 0;
    setting->Smallest(&surely, &at_least);
    std::printf("smallest %lld %lld\n", (long long)surely, (long long)at_least);
  } else {
    const int64_t limit = question.limit > 0 ? question.limit : kUnlimited;
    const Outcome found = setting->Ask(limit, false, true);
    Tell("order", found);
    Tell("waiting", found.fits ? found : setting->Ask(limit, true, true));
  }
  std::fflush(stdout);
}

template <class T>
bool Read(T* into, int64_t count) {
  return std::fread(into, sizeof(T), count, stdin) == static_cast<size_t>(count);
}

bool Prepare(Trace* trace) {
  std::vector<bool> lives;
  std::vector<int64_t> size;
  int64_t in_use = 0, threads = 0;
  for (const Event& event : trace->events) {
    const int64_t thread = event.who >> 1;
    if (event.who < 0 || event.value < 0 || thread > (1 << 20)) return false;
    threads = std::max(threads, thread + 1);
    if (event.who & 1) {
      if (event.value >= static_cast<int64_t>(lives.size()) || !lives[event.value]) return false;
      lives[event.value] = false;
      in_use -= size[event.value];
      trace->number.push_back(event.value);
    } else {
      if (event.value > kUnlimited) return false;
      trace->number.push_back(lives.size());
      lives.push_back(true);
      size.push_back(Rounded(event.value));
      in_use += size.back();
      trace->largest = std::max(trace->largest, size.back());
      trace->peak = std::max(trace->peak, in_use);
    }
  }
  trace->allocations = lives.size();
  trace->of_thread.resize(threads);
  for (size_t at = 0; at < trace->events.size(); at++) {
    trace->of_thread[trace->events[at].who >> 1].push_back(at);
  }
  return true;
}

void Bound(int resource, int64_t most) {
  const rlimit bound{static_cast<rlim_t>(most), static_cast<rlim_t>(most)};
  setrlimit(resource, &bound);
}

int Main() {
  struct {
    char magic[8];
    int64_t seconds, memory, events, steps, questions;
  } head;
  if (!Read(&head, 1) || std::memcmp(head.magic, "TFMRPL1", 8) != 0) return 2;
  if (head.events < 0 || head.steps < 0 || head.questions < 0) return 2;
  Bound(RLIMIT_CPU, head.seconds);
  Bound(RLIMIT_DATA, head.memory);
  Bound(RLIMIT_CORE, 0);
  // Pools come and go: their books are kept in memory that stays.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
  Trace trace;
  trace.events.resize(head.events);
  trace.steps.resize(head.steps);
  std::vector<Question> questions(head.questions);
  if (!Read(trace.events.data(), head.events) || !Read(trace.steps.data(), head.steps) ||
      !Read(questions.data(), head.questions) || !Prepare(&trace)) {
    return 2;
  }
  const Question* last = nullptr;
  std::unique_ptr<Setting> setting;
  for (const Question& question : questions) {
    if (last == nullptr || last->growth != question.growth || last->collects != question.collects) {
      setting = std::make_unique<Setting>(trace, question);
    }
    last = &question;
    try {
      Answer(question, setting.get());
    } catch (const std::bad_alloc&) {
      setting = std::make_unique<Setting>(trace, question);
      std::printf("memory\n");
    }
  }
  return 0;
}

}  // namespace

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would read the answers
  if (nice(19) == -1) std::fflush(stdout);
  int status;
  try {
    status = Main();
  } catch (const std::bad_alloc&) {
    status = 3;
  }
  std::fflush(stdout);
  _exit(status);  // not by TensorFlow's own way out
}
