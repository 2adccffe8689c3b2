// Replays the allocations of a training in TensorFlow's own BFC allocator, over memory that is not there.
//
// This program is built on demand as the probe is, against the same TensorFlow, and run as a process of its own. It
// reads from stdin what `experiments/whatif/replayer.py` writes, the trace and then questions, and writes the answer to each question as
// soon as it has it. No byte of the memory that is allocated is ever touched. The program itself needs memory for the
// allocator's book-keeping, 1/32 of each pool.
//
// Exit status: 0 all questions are answered, 2 the input is not valid, 3 not even the trace fits the allowed memory.

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
#include <map>
#include <memory>
#include <new>
#include <tuple>
#include <vector>

#include "replay_pool.h"
#include "replay_trace.h"

namespace {

// Answers what happens under one setting and any limits. All outcomes are kept for later questions.
//
// Threads take turns in another order in each run, so some orders near the recorded one are replayed, too. A limit is
// *sure* if all fits in the recorded order without waiting, and in each of the other orders with waiting. A limit
// *could* do if all fits in any of these orders with waiting, or if all but scratch memory fits in the recorded one. A
// limit is enough for the same algorithms if it is sure without the scratch memory of kernels that are not taken.
class Setting {
 public:
  Setting(const Trace& trace, const Question& under, int64_t divisor = 1)
      : trace_(trace),
        under_(under),
        scratch_(std::find(trace.scratch.begin(), trace.scratch.end(), true) != trace.scratch.end()),
        divisor_(divisor),
        granule_(std::max(kMiB, WholeMiB(trace.peak / 512))) {
    for (int64_t number = kRecorded + 1; number < kOrders; number++) others_.push_back(number);
  }

  bool IsOf(const Question& question) const {
    return under_.growth == question.growth && under_.collects == question.collects;
  }

  // The smallest limit that is sure, and the smallest that could do. If a limit is enough, a larger one need not be,
  // since the regions differ then. So some limits above the first are tried, too, and some below the second.
  Ends Smallest() {
    const Ends like = Likely();
    const auto sure = [this](int64_t limit) { return IsSure(limit); };
    const auto could = [this](int64_t limit) { return CouldDo(limit); };
    Ends ends;
    int64_t top = Top(), fails = Peak();
    for (bool found = false; !found;) {
      ends.surely = Search(fails, top, like.surely, sure);
      if (ends.surely == top) {
        while (!IsSure(top)) top = WholeMiB(top + top / 4);
        ends.surely = Search(fails, top, 0, sure);
      }
      found = true;
      for (int64_t above = granule_; found && !knows_ && above <= kLook * granule_; above *= 4) {
        found = Ask(ends.surely + above, kRecorded, Manner::kInOrder).fits;
        if (!found) fails = ends.surely + above;
      }
    }
    sure_from_ = ends.surely;
    ends.at_least = Search(Largest(ends.surely), ends.surely, like.at_least, could);
    for (int64_t below = 2 * granule_; !knows_ && below <= kLook * granule_ && below < ends.at_least; below *= 4) {
      if (!CouldDo(ends.at_least - below)) continue;
      ends.at_least -= below;
      below = granule_ / 2;
    }
    return ends;
  }

  // The outcome without waiting in the recorded order; or that of another order, in which not even waiting helps.
  const Outcome& Surely(int64_t limit) {
    const Outcome& found = Ask(limit, kRecorded, Manner::kInOrder);
    if (!found.fits || limit >= sure_from_ || IsSure(limit)) return found;
    return Ask(limit, others_[0], Manner::kWaiting);
  }

  // The best outcome in the recorded order.
  const Outcome& AtBest(int64_t limit) {
    const Outcome& sparing = Ask(limit, kRecorded, Manner::kSparing);
    if (sparing.fits || !scratch_) return sparing;
    const Outcome& without = Ask(limit, kRecorded, Manner::kWithout);
    return without.fits ? without : sparing;
  }

  // The best outcome in any of the orders.
  const Outcome& AtBestOfAll(int64_t limit) {
    const Outcome& recorded = AtBest(limit);
    if (recorded.fits) return recorded;
    for (auto order = others_.rbegin(); order != others_.rend(); ++order) {
      const Outcome& found = Ask(limit, *order, Manner::kSparing);
      if (found.fits) return found;
    }
    return recorded;
  }

 private:
  static constexpr int64_t kLook = 64;
  static constexpr int64_t kNear = 4;  // events by which threads are shifted in the orders nearest to the recorded one
  static constexpr int64_t kLarge = int64_t{4} << 30;
  static constexpr int64_t kRecorded = 0, kOrders = 13;  // numbers of orders

  int64_t Top() {
    if (under_.growth) return WholeMiB(Ask(kUnlimited, kRecorded, Manner::kInOrder).peak_pool);
    return WholeMiB(trace_.peak + kAlwaysSplit + trace_.largest);
  }
  int64_t Peak() const { return (trace_.peak - 1) / kMiB * kMiB; }
  int64_t Largest(int64_t most) const { return std::min((trace_.largest_needed - 1) / kMiB * kMiB, most - kMiB); }

  // Returns the limits at which the search begins: the first is what the recorded order alone needs. The book-keeping
  // of a large pool is long. So there the search begins near the limits of the same trace made smaller, and only with
  // the order that was decisive for these.
  Ends Likely() {
    Ends like;
    int64_t divisor = 1;
    while (under_.growth && divisor <= trace_.peak / kLarge) divisor *= 2;
    Trace less;
    if (divisor > 1 && MakeSmaller(trace_, divisor, trace_.spares, &less)) {
      Setting smaller(less, under_, divisor);
      like = smaller.Smallest();
      others_ = {smaller.others_[0]};
      knows_ = true;
      return {like.surely * divisor, like.at_least * divisor};
    }
    int64_t top = Top();
    while (!Ask(top, kRecorded, Manner::kInOrder).fits) top = WholeMiB(top + top / 4);
    like.surely = Search(Peak(), top, 0, [this](int64_t limit) { return Ask(limit, kRecorded, Manner::kInOrder).fits; });
    return like;
  }

  bool IsSure(int64_t limit) {
    if (!Ask(limit, kRecorded, Manner::kInOrder).fits) return false;
    for (auto order = others_.begin(); order != others_.end(); ++order) {
      if (Ask(limit, *order, Manner::kWaiting).fits) continue;
      std::rotate(others_.begin(), order, order + 1);
      return false;
    }
    return true;
  }

  bool CouldDo(int64_t limit) { return AtBestOfAll(limit).fits; }

  // Searches between a limit that fails and one that passes, in whole MiB. Returns a limit that passes while one that
  // is a granule lower does not. The search begins at the `likely` limit, unless it is 0, and goes on in growing steps.
  template <class Passes>
  int64_t Search(int64_t fails, int64_t passes, int64_t likely, Passes is_enough) {
    const auto look = [&](int64_t limit) {
      const bool enough = is_enough(limit);
      (enough ? passes : fails) = limit;
      return enough;
    };
    if (likely > fails && likely <= passes) {
      const bool down = likely == passes || look(likely);
      for (int64_t step = granule_;; step *= 2) {
        const int64_t limit = likely + (down ? -step : step);
        if (limit <= fails || limit >= passes || look(limit) != down) break;
      }
    }
    while (passes - fails > granule_) look(fails + (passes - fails) / kMiB / 2 * kMiB);
    return passes;
  }

  const Outcome& Ask(int64_t limit, int64_t order, Manner manner) {
    if (order == kRecorded && under_.growth) {
      // A pool that does not reach its limit takes the same regions under a larger limit.
      const auto free = known_.find({kUnlimited, kRecorded, Manner::kInOrder});
      if (free != known_.end() && limit >= free->second.peak_pool) return free->second;
    }
    if (manner != Manner::kInOrder) {
      const auto quick = known_.find({limit, order, Manner::kInOrder});
      if (quick != known_.end() && quick->second.fits) return quick->second;
    }
    const auto key = std::make_tuple(limit, order, manner);
    auto known = known_.find(key);
    if (known == known_.end()) known = known_.emplace(key, Find(limit, Ordered(order), manner)).first;
    return known->second;
  }

  const Trace& Ordered(int64_t order) {
    if (order == kRecorded) return trace_;
    auto known = reordered_.find(order);
    if (known == reordered_.end()) {
      known = reordered_.emplace(order, Reordered(trace_, kNear << order % 4, order)).first;
    }
    return known->second;
  }

  Outcome Find(int64_t limit, const Trace& trace, Manner manner) {
    if (under_.growth || limit < kAlwaysSplit) return Run(Pool(under_, limit, divisor_), trace, manner);
    // Without growth the pool is one region of the whole limit, of which only the beginning may ever be used. So it is
    // replayed as a smaller region. Its rest must always be the largest free chunk, and always be split: then the
    // outcome is that of the larger region.
    const int64_t usual = WholeMiB(trace.peak * 5 / 2 + trace.largest + kAlwaysSplit);
    int64_t size = std::min(limit, usual);
    for (;;) {
      Outcome found = Run(RegionOf(size, usual), trace, manner);
      if (size == limit) return found;
      const int64_t enough = WholeMiB(2 * found.extent + trace.largest + kAlwaysSplit);
      if (found.fits && size >= enough) {
        found.pool = found.peak_pool = limit;
        found.largest_free += limit - size;
        return found;
      }
      size = std::min(limit, std::max(enough, 2 * size));
    }
  }

  // A pool of one region with a limit of `size`. A new region is made a little larger, up to the `usual` size, so that
  // it serves for the next limits, too.
  Pool& RegionOf(int64_t size, int64_t usual) {
    if (whole_ == nullptr || whole_->size() < size) {
      whole_ = nullptr;
      whole_ = std::make_unique<Pool>(under_, std::max(size, std::min(usual, size + size / 4)));
    }
    whole_->SetLimit(size);
    return *whole_;
  }

  Outcome Run(Pool&& pool, const Trace& trace, Manner manner) { return Run(pool, trace, manner); }
  Outcome Run(Pool& pool, const Trace& trace, Manner manner) { return Replay(trace, &pool, manner).Run(); }

  const Trace& trace_;
  const Question under_;
  const bool scratch_;     // whether there is any in the trace
  const int64_t divisor_;  // by which the trace was made smaller
  const int64_t granule_;
  int64_t sure_from_ = kUnlimited;
  bool knows_ = false;  // whether it is known what a smaller trace needs
  std::map<int64_t, Trace> reordered_;
  std::vector<int64_t> others_;  // the other orders; the one in which a replay failed last comes first
  std::map<std::tuple<int64_t, int64_t, Manner>, Outcome> known_;
  std::unique_ptr<Pool> whole_;  // one region, for limits up to its size
};

void Tell(const char* what, const Outcome& found) {
  std::printf("%s %d %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld\n", what, found.fits,
              (long long)found.in_use, (long long)found.peak, (long long)found.pool, (long long)found.peak_pool,
              (long long)found.growths, (long long)found.largest_free, (long long)found.allocations,
              (long long)found.failed, (long long)found.asked, (long long)found.lacking, (long long)found.waits);
}

void Answer(const Trace& trace, const Question& question, Setting* setting) {
  if (question.kind == kSmallest) {
    Ends found = setting->Smallest();
    found.alike = found.surely;
    Trace sparing;
    const bool tried = std::find(trace.untaken.begin(), trace.untaken.end(), true) != trace.untaken.end();
    if (tried && MakeSmaller(trace, 1, true, &sparing)) {
      found.alike = std::min(found.surely, Setting(sparing, question).Smallest().surely);
    }
    std::printf("smallest %lld %lld %lld\n", (long long)found.surely, (long long)found.at_least,
                (long long)std::max(found.alike, found.at_least));
    return;
  }
  const int64_t limit = question.limit > 0 ? question.limit : kUnlimited;
  const Outcome found = setting->Surely(limit);
  Tell("order", found);
  Tell("waiting", found.fits ? found : setting->AtBestOfAll(limit));
}

// Answers questions until there are no more. Returns 0, or 2 if a question is not valid.
int Converse(const Trace& trace) {
  std::vector<std::unique_ptr<Setting>> settings;  // each is made at the first question about it
  for (Question question; std::fread(&question, sizeof question, 1, stdin) == 1;) {
    if (question.limit < 0 || question.limit > kUnlimited) return 2;
    const auto answers = [&] {
      for (const auto& known : settings) {
        if (known->IsOf(question)) return Answer(trace, question, known.get());
      }
      settings.push_back(std::make_unique<Setting>(trace, question));
      Answer(trace, question, settings.back().get());
    };
    try {
      answers();
    } catch (const std::bad_alloc&) {
      settings.clear();  // their book-keeping takes memory, too
      try {
        answers();
      } catch (const std::bad_alloc&) {
        std::printf("memory\n");
      }
    }
    std::fflush(stdout);
  }
  return 0;
}

template <class T>
bool Read(T* into, int64_t count) {
  return std::fread(into, sizeof(T), count, stdin) == static_cast<size_t>(count);
}

void Bound(int resource, int64_t most) {
  const rlimit bound{static_cast<rlim_t>(most), static_cast<rlim_t>(most)};
  setrlimit(resource, &bound);
}

int Main() {
  struct {
    char magic[8];
    int64_t seconds, memory, events, steps, scratch, untaken, runs, order;
  } head;
  if (!Read(&head, 1) || std::memcmp(head.magic, "TFMRPL5", 8) != 0) return 2;
  for (int64_t count : {head.events, head.steps, head.scratch, head.untaken, head.runs, head.order}) {
    if (count < 0) return 2;
  }
  Bound(RLIMIT_CPU, head.seconds);
  Bound(RLIMIT_DATA, head.memory);
  Bound(RLIMIT_CORE, 0);
  // Pools are made and deleted again and again: the memory of their book-keeping stays with the process.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
  Trace trace;
  trace.events.resize(head.events);
  trace.steps.resize(head.steps);
  std::vector<int64_t> scratch(head.scratch), untaken(head.untaken);
  if (!Read(trace.events.data(), head.events) || !Read(trace.steps.data(), head.steps)) return 2;
  if (!Read(scratch.data(), head.scratch) || !Read(untaken.data(), head.untaken)) return 2;
  trace.run.resize(head.runs);
  trace.order.resize(head.order);
  if (!Read(trace.run.data(), head.runs) || !Read(trace.order.data(), head.order)) return 2;
  for (auto [numbers, marks] : {std::pair(&scratch, &trace.scratch), std::pair(&untaken, &trace.untaken)}) {
    marks->resize(head.events);
    for (int64_t number : *numbers) {
      if (number < 0 || number >= head.events) return 2;
      (*marks)[number] = true;
    }
  }
  if (!Prepare(&trace) || !IsPossible(trace)) return 2;
  return Converse(trace);
}

}  // namespace

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // if the parent ends, no process reads the answers
  if (nice(19) == -1) std::fflush(stdout);
  int status;
  try {
    status = Main();
  } catch (const std::bad_alloc&) {
    status = 3;
  }
  std::fflush(stdout);
  _exit(status);  // without TensorFlow's exit handlers
}
