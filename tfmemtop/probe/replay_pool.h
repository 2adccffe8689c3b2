// A pool over memory that is not there, and the replay of a trace in it.

#ifndef TFMEMTOP_PROBE_REPLAY_POOL_H_
#define TFMEMTOP_PROBE_REPLAY_POOL_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "tensorflow/core/common_runtime/bfc_allocator.h"
#include "tensorflow/core/protobuf/bfc_memory_map.pb.h"

#include "replay_trace.h"

namespace {

using tensorflow::AllocationAttributes;
using tensorflow::BFCAllocator;

constexpr int64_t kAlwaysSplit = 128 * kMiB;  // BFC splits a chunk that has this much to spare
constexpr uint64_t kSomewhere = uint64_t{1} << 45;

// Returns addresses without memory, which no code may touch: as many bytes as a device of `capacity` bytes has. Each
// region lies below the one before, as with mmap on the CPU, and with cudaMalloc on the GPUs whose maps were recorded.
// That order matters: BFC takes the lowest of the free chunks of one size.
class Nowhere : public tsl::SubAllocator {
 public:
  Nowhere(int64_t capacity, int64_t* growths) : SubAllocator({}, {}), left_(capacity), growths_(growths) {}
  void* Alloc(size_t, size_t size, size_t* received) override {
    if (static_cast<int64_t>(size) > left_) return nullptr;
    left_ -= size;
    ++*growths_;
    *received = size;
    const uint64_t room = (size + 2 * kMiB) / (2 * kMiB) * (2 * kMiB) + 2 * kMiB;  // regions never touch
    next_ -= room;
    const uint64_t address = next_;
    if (first_ == 0) first_ = address;
    return reinterpret_cast<void*>(address);
  }
  void Free(void*, size_t size) override { left_ += size; }
  bool SupportsCoalescing() const override { return false; }
  tsl::AllocatorMemoryType GetMemoryType() const override { return tsl::AllocatorMemoryType::kDevice; }
  int64_t first() const { return first_; }  // the address of the first region

 private:
  int64_t left_;
  uint64_t next_ = kSomewhere, first_ = 0;
  int64_t* growths_;
};

struct Question {
  int64_t kind;  // kRow, kSmallest
  int64_t growth, collects, limit;
};
constexpr int64_t kRow = 0, kSmallest = 1;

struct Ends {
  int64_t surely = 0, at_least = 0, alike = 0;
};

struct Outcome {
  bool fits = false;
  int64_t in_use = 0, peak = 0, pool = 0, peak_pool = 0, growths = 0, largest_free = 0, allocations = 0;
  int64_t failed = kNone, asked = 0, lacking = 0, waits = 0, extent = 0;
};

// An empty pool, whose limit can be changed if it is one region. To make a pool costs more than most replays, since its
// book-keeping is as long as the pool. The bytes above the limit are a chunk in use at the region's start, the plug.
class Pool {
 public:
  // For a trace that was made smaller by `divisor`, the spare bytes from which on BFC always splits a chunk are made
  // smaller as well.
  Pool(const Question& under, int64_t limit, int64_t divisor = 1) : size_(limit), limit_(limit) {
    BFCAllocator::Options options;
    options.allow_growth = under.growth != 0;
    options.allow_retry_on_failure = false;  // Replay does the waiting
    options.garbage_collection = under.collects != 0;
    if (divisor > 1) options.fragmentation_fraction = static_cast<double>(kAlwaysSplit) / divisor / limit;
    auto nowhere = std::make_unique<Nowhere>(limit, &growths_);
    nowhere_ = nowhere.get();
    allocator_ = std::make_unique<BFCAllocator>(std::move(nowhere), limit, "replay", options);
  }

  void SetLimit(int64_t limit) {
    if (plug_ != nullptr) allocator_->DeallocateRaw(plug_);
    plug_ = nullptr;
    limit_ = limit;
    if (limit < size_) plug_ = Allocate(size_ - limit);
    allocator_->ClearStats();
  }

  void* Allocate(int64_t size) {
    AllocationAttributes attributes(/*retry_on_failure=*/false, /*allocation_will_be_logged=*/false, nullptr);
    return allocator_->AllocateRaw(64, size, attributes);
  }

  void Free(void* address) { allocator_->DeallocateRaw(address); }

  // The bytes from the beginning of the first region to `address`, without the plug.
  int64_t Offset(void* address) const {
    return reinterpret_cast<int64_t>(address) - nowhere_->first() - (size_ - limit_);
  }

  void Describe(Outcome* found) {
    auto stats = allocator_->GetStats();
    const int64_t plug = size_ - limit_;
    found->in_use = stats->bytes_in_use - (plug_ ? plug : 0);
    found->peak = stats->peak_bytes_in_use - (plug_ ? plug : 0);
    found->pool = stats->pool_bytes.value_or(kNone) - (plug_ ? plug : 0);
    found->peak_pool = stats->peak_pool_bytes.value_or(kNone) - (plug_ ? plug : 0);
    found->allocations = stats->num_allocs;
    found->growths = growths_;
    found->largest_free = 0;
    const auto map = allocator_->RecordMemoryMap();
    for (const auto& chunk : map.chunk()) {
      if (!chunk.in_use()) found->largest_free = std::max<int64_t>(found->largest_free, chunk.size());
    }
  }

  int64_t size() const { return size_; }
  int64_t limit() const { return limit_; }

 private:
  const int64_t size_;
  int64_t limit_, growths_ = 0;
  Nowhere* nowhere_;  // owned by the allocator
  std::unique_ptr<BFCAllocator> allocator_;
  void* plug_ = nullptr;
};

// How a trace is replayed. `kSparing` does without scratch memory that finds no room, as TensorFlow does: it requests
// such memory once and never waits for it. `kWithout` uses no scratch memory: TensorFlow then takes another algorithm,
// which may need less.
enum class Manner { kInOrder, kWaiting, kSparing, kWithout };

class Replay {
 public:
  Replay(const Trace& trace, Pool* pool, Manner manner)
      : trace_(trace), pool_(pool), manner_(manner), live_(trace.allocations, nullptr), without_(trace.allocations) {}

  ~Replay() {
    for (void* address : live_) {
      if (address != nullptr) pool_->Free(address);
    }
  }

  Outcome Run() { return manner_ == Manner::kInOrder ? InOrder() : Waiting(); }

 private:
  // Replays one event after the other, as they came.
  Outcome InOrder() {
    for (int64_t at = 0; at < Count(); at++) {
      if (!Do(at)) return Failed(at);
    }
    return Passed();
  }

  // Replays by thread: a thread whose allocation finds no room waits, while the others go on and free. It waits in its
  // step and the next one at most: TensorFlow gives up after 10 s, and a step ends only when all its operations have
  // ended. A thread that has called a function waits for the end of its run.
  Outcome Waiting() {
    const int64_t threads = trace_.of_thread.size();
    cursor_.assign(threads, 0);
    since_.assign(threads, kNone);
    tried_.assign(threads, kNone);
    KeepOrder();
    size_t step = 0;
    for (int64_t at = 0; at < Count(); at++) {
      while (step < trace_.steps.size() && trace_.steps[step] <= at) {
        step++;
        for (int64_t thread : blocked_) {
          const int64_t head = Head(thread);
          const bool frees = trace_.events[head].who & 1;  // then it waits for an allocation, and not for room
          if (step >= 2 && !frees && since_[thread] < trace_.steps[step - 2] && MayDo(head)) return Failed(head);
        }
      }
      const int64_t thread = trace_.events[at].who >> 1;
      if (since_[thread] != kNone) continue;
      if (MayDo(at) && Do(at)) {
        Done(at);
        cursor_[thread]++;
      } else {
        Block(thread, at);
        if (blocked_.size() == static_cast<size_t>(threads)) return Failed(Starving());
      }
      if (!blocked_.empty()) GoOn(at);
      if (refused_ != kNone) return Failed(refused_);
    }
    if (!blocked_.empty()) return Failed(Starving());
    return Passed();
  }

  int64_t Count() const { return trace_.events.size(); }
  int64_t Head(int64_t thread) const { return trace_.of_thread[thread][cursor_[thread]]; }

  bool Do(int64_t at) {
    const Event& event = trace_.events[at];
    const int64_t number = trace_.number[at];
    void*& address = live_[number];
    if (event.who & 1) {
      if (address == nullptr) return without_[number];  // if false, its allocation still waits
      pool_->Free(address);
      address = nullptr;
      frees_++;
      return true;
    }
    const bool scratch = trace_.scratch[number];
    if (!scratch || manner_ != Manner::kWithout) address = pool_->Allocate(event.value);
    if (address == nullptr) {
      const bool spares = (scratch && (manner_ == Manner::kSparing || manner_ == Manner::kWithout)) ||
                          (trace_.spares && trace_.untaken[number]);
      without_[number] = spares || event.value == 0;  // BFC returns no address for 0 bytes
      if (scratch && !spares && refused_ == kNone) refused_ = at;
      return without_[number];
    }
    outcome_.extent = std::max(outcome_.extent, pool_->Offset(address) + Rounded(event.value));
    return true;
  }

  void KeepOrder() {
    if (trace_.order.empty()) return;
    lacks_.assign(trace_.runs, 0);
    starts_.assign(trace_.runs, {kNone, kNone, kNone, kNone});
    done_.resize(trace_.events.size());
    awaits_.assign(trace_.events.size(), kNone);
    for (int64_t run : trace_.run) {
      if (run != kNone) lacks_[run]++;
    }
    for (const Follows& one : trace_.order) {
      starts_[one.run] = one;
      // Of several runs between two events of the thread, the last one counts: it follows the others.
      if (one.after != kNone) awaits_[one.after] = one.run;
    }
  }

  int64_t RunOf(int64_t at) const { return trace_.events[at].who & 1 ? kNone : trace_.run[trace_.number[at]]; }

  // Whether all that must come before event `at` has happened.
  bool MayDo(int64_t at) const {
    if (done_.empty()) return true;
    if (awaits_[at] != kNone && lacks_[awaits_[at]] > 0) return false;
    const int64_t run = RunOf(at);
    if (run == kNone) return true;
    const Follows& start = starts_[run];
    return (start.event == kNone || done_[start.event]) && (start.before == kNone || lacks_[start.before] == 0);
  }

  void Done(int64_t at) {
    if (done_.empty()) return;
    done_[at] = true;
    const int64_t run = RunOf(at);
    if (run != kNone) lacks_[run]--;
  }

  void Block(int64_t thread, int64_t at) {
    since_[thread] = at;
    tried_[thread] = MayDo(at) ? frees_ : kNone;
    blocked_.push_back(thread);
    outcome_.waits += !(trace_.events[at].who & 1) && tried_[thread] != kNone;
  }

  // Tries the waiting threads again, until none of them can go on. No thread goes beyond event `at`.
  void GoOn(int64_t at) {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t place = 0; place < blocked_.size();) {
        const int64_t thread = blocked_[place];
        const auto& mine = trace_.of_thread[thread];
        const bool frees = trace_.events[Head(thread)].who & 1;
        if (!frees && tried_[thread] == frees_) {
          place++;
          continue;
        }
        bool done = true;
        while (cursor_[thread] < static_cast<int64_t>(mine.size()) && mine[cursor_[thread]] <= at) {
          const int64_t head = mine[cursor_[thread]];
          const bool may = MayDo(head);
          if (!may || !Do(head)) {
            const bool begins = may && tried_[thread] == kNone;  // to wait for room, and not for a run any more
            if (begins || !may) since_[thread] = at;
            outcome_.waits += begins && !(trace_.events[head].who & 1);
            tried_[thread] = may ? frees_ : kNone;
            done = false;
            break;
          }
          Done(head);
          cursor_[thread]++;
          tried_[thread] = kNone;
          moved = true;
        }
        if (done) {
          since_[thread] = kNone;
          blocked_.erase(blocked_.begin() + place);
        } else {
          place++;
        }
      }
    }
  }

  // The first event that waits for room.
  int64_t Starving() const {
    int64_t first = kNone;
    for (int64_t thread : blocked_) {
      const int64_t at = Head(thread);
      if (!(trace_.events[at].who & 1) && MayDo(at) && (first == kNone || at < first)) first = at;
    }
    return first == kNone ? Head(blocked_.front()) : first;
  }

  Outcome Failed(int64_t at) {
    Outcome found = Passed();
    found.fits = false;
    found.failed = trace_.recorded.empty() ? at : trace_.recorded[at];
    found.asked = trace_.events[at].who & 1 ? 0 : trace_.events[at].value;
    // The largest allocation that was possible: the largest free chunk, or a new region of all that the limit leaves.
    found.lacking = std::max<int64_t>(0, Rounded(found.asked) - std::max(found.largest_free, pool_->limit() - found.pool));
    return found;
  }

  Outcome Passed() {
    Outcome found = outcome_;
    found.fits = true;
    pool_->Describe(&found);
    return found;
  }

  const Trace& trace_;
  Pool* const pool_;
  const Manner manner_;
  std::vector<void*> live_;    // by allocation
  std::vector<bool> without_;  // by allocation: whether it is left out, without an address
  Outcome outcome_;
  int64_t frees_ = 0, refused_ = kNone;  // `refused_` is the event of scratch memory for which there was no room
  std::vector<int64_t> cursor_, since_, tried_, blocked_;  // by thread; `blocked_` lists threads
  std::vector<bool> done_;       // by event; empty if no order of runs is known, as the next three
  std::vector<int64_t> awaits_;  // by event: the run that ends before it
  std::vector<int64_t> lacks_;   // by run: how many of its allocations have not been made
  std::vector<Follows> starts_;  // by run: what comes before it
};

}  // namespace

#endif  // TFMEMTOP_PROBE_REPLAY_POOL_H_
