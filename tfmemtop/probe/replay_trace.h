// A trace of allocations and frees, and functions that make the sizes smaller or change the order.

#ifndef TFMEMTOP_PROBE_REPLAY_TRACE_H_
#define TFMEMTOP_PROBE_REPLAY_TRACE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kRounding = 256;  // BFC rounds every request up to a multiple of this
constexpr int64_t kUnlimited = int64_t{1} << 46;
constexpr int64_t kNone = -1;

int64_t Rounded(int64_t size) { return std::max((size + kRounding - 1) / kRounding * kRounding, kRounding); }
int64_t WholeMiB(int64_t size) { return (size + kMiB - 1) / kMiB * kMiB; }

struct Event {
  int64_t who;    // thread * 2, + 1 for a free
  int64_t value;  // bytes requested; of a free, the number of the allocation
};

// A thread that calls a function goes on when its run has ended. Before the run's first allocation, the thread makes
// `event`, and all allocations of the run `before` are made. After its last one, the thread makes the event `after`. Each
// of the three may be kNone.
struct Follows {
  int64_t run, event, before, after;
};

struct Trace {
  std::vector<Event> events;
  std::vector<int64_t> number;    // by event: the number of the allocation that it makes or frees
  std::vector<int64_t> recorded;  // by event: its number in the recorded trace; empty if this is the recorded trace
  std::vector<int64_t> steps;     // events at which a step begins
  std::vector<std::vector<int64_t>> of_thread;
  std::vector<bool> scratch;  // by allocation: whether TensorFlow can do without it
  std::vector<bool> untaken;  // by allocation: whether it is scratch memory to try a kernel that is then not taken
  bool spares = false;        // whether the replay does without the untaken ones that find no room
  std::vector<int64_t> run;   // by allocation: the run of a function that makes it, or kNone; empty if none is known
  std::vector<Follows> order;
  int64_t runs = 0;
  int64_t allocations = 0, largest = 0, peak = 0;  // `peak` of the requests, rounded, without those that are spared
  int64_t largest_needed = 0;  // the largest allocation that is not scratch memory
};

// Computes all that follows from the events and from `scratch` and `untaken`, which may be longer than there are
// allocations. False if the events are not valid.
bool Prepare(Trace* trace) {
  trace->scratch.resize(std::max(trace->scratch.size(), trace->events.size()));
  trace->untaken.resize(trace->scratch.size());
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
      const size_t number = lives.size();
      trace->number.push_back(number);
      lives.push_back(true);
      size.push_back(trace->spares && trace->untaken[number] ? 0 : Rounded(event.value));
      if (!trace->scratch[number]) trace->largest_needed = std::max(trace->largest_needed, size.back());
      in_use += size.back();
      trace->largest = std::max(trace->largest, Rounded(event.value));
      trace->peak = std::max(trace->peak, in_use);
    }
  }
  trace->allocations = lives.size();
  trace->scratch.resize(lives.size());
  trace->untaken.resize(lives.size());
  trace->run.resize(lives.size(), kNone);
  const auto is_event = [&](int64_t event) { return event >= kNone && event < static_cast<int64_t>(trace->events.size()); };
  for (int64_t run : trace->run) {
    if (run < kNone || run >= static_cast<int64_t>(lives.size())) return false;
    trace->runs = std::max(trace->runs, run + 1);
  }
  for (const Follows& one : trace->order) {
    if (one.run < 0 || one.before < kNone || std::max(one.run, one.before) >= trace->runs) return false;
    if (!is_event(one.event) || !is_event(one.after)) return false;
  }
  trace->of_thread.resize(threads);
  for (size_t at = 0; at < trace->events.size(); at++) {
    trace->of_thread[trace->events[at].who >> 1].push_back(at);
  }
  return true;
}

// Whether the recorded order agrees with the order of the runs. Otherwise no order of the events would do.
bool IsPossible(const Trace& trace) {
  std::vector<int64_t> first(trace.runs, kNone), last(trace.runs, kNone);
  for (size_t at = 0; at < trace.events.size(); at++) {
    const int64_t run = trace.events[at].who & 1 ? kNone : trace.run[trace.number[at]];
    if (run == kNone) continue;
    if (first[run] == kNone) first[run] = at;
    last[run] = at;
  }
  for (const Follows& one : trace.order) {
    if (first[one.run] == kNone || one.event >= first[one.run]) return false;
    if (one.after != kNone && one.after <= last[one.run]) return false;
    if (one.before != kNone && last[one.before] >= first[one.run]) return false;
  }
  return true;
}

// Makes `smaller` the same trace with all sizes divided by `divisor`, and with `spares`; false if it is not valid.
bool MakeSmaller(const Trace& trace, int64_t divisor, bool spares, Trace* smaller) {
  smaller->spares = spares;
  smaller->untaken = trace.untaken;
  smaller->events = trace.events;
  smaller->steps = trace.steps;
  smaller->scratch = trace.scratch;
  smaller->run = trace.run;
  smaller->order = trace.order;
  for (Event& event : smaller->events) {
    if (!(event.who & 1)) event.value = (event.value + divisor - 1) / divisor;
  }
  return Prepare(smaller);
}

// The trace as it might have been: now and then each thread is shifted against the others by up to `apart` events,
// earlier or later. The thread's own events stay in their order, and nothing is freed before it is allocated.
Trace Reordered(const Trace& trace, int64_t apart, int64_t seed) {
  std::mt19937_64 chance(seed);
  std::vector<int64_t> turn(trace.events.size());
  for (const auto& mine : trace.of_thread) {
    int64_t shift = 0, before = -2 * apart, last = -apart;
    for (int64_t at : mine) {
      // The shift changes now and then, and after a pause of the thread.
      if (at > before + apart || chance() % 16 == 0) shift = static_cast<int64_t>(chance() % (2 * apart + 1)) - apart;
      before = at;
      turn[at] = last = std::max(last, at + shift);
    }
  }
  Trace other;
  other.steps = trace.steps;
  other.spares = trace.spares;
  other.scratch.resize(trace.allocations);
  other.untaken.resize(trace.allocations);
  other.run.resize(trace.allocations, kNone);
  std::vector<int64_t> renumbered(trace.allocations, kNone), cursor(trace.of_thread.size(), 0);
  std::vector<std::vector<int64_t>> waiting(trace.allocations);  // frees, by the allocation that they free
  using Next = std::pair<int64_t, int64_t>;                      // the turn of an event, and the event
  std::priority_queue<Next, std::vector<Next>, std::greater<Next>> next;
  const auto offer = [&](int64_t thread) {
    const auto& mine = trace.of_thread[thread];
    if (cursor[thread] < static_cast<int64_t>(mine.size())) next.push({turn[mine[cursor[thread]]], mine[cursor[thread]]});
  };
  for (size_t thread = 0; thread < trace.of_thread.size(); thread++) offer(thread);
  int64_t made = 0;
  std::vector<int64_t> now(trace.events.size(), kNone);  // by recorded event: its number in the other order
  while (!next.empty()) {
    const int64_t at = next.top().second, number = trace.number[at];
    next.pop();
    Event event = trace.events[at];
    if (event.who & 1) {
      if (renumbered[number] == kNone) {
        waiting[number].push_back(at);
        continue;
      }
      event.value = renumbered[number];
    } else {
      other.scratch[made] = trace.scratch[number];
      other.untaken[made] = trace.untaken[number];
      other.run[made] = trace.run[number];
      renumbered[number] = made++;
      for (int64_t free : waiting[number]) next.push({turn[free], free});
    }
    other.events.push_back(event);
    now[at] = other.events.size() - 1;
    other.recorded.push_back(at);
    cursor[event.who >> 1]++;
    offer(event.who >> 1);
  }
  const auto number_of = [&](int64_t event) { return event == kNone ? kNone : now[event]; };
  for (const Follows& one : trace.order) {
    other.order.push_back({one.run, number_of(one.event), one.before, number_of(one.after)});
  }
  Prepare(&other);
  return other;
}

}  // namespace

#endif  // TFMEMTOP_PROBE_REPLAY_TRACE_H_
