// Runs a window: has TensorFlow record events, collects them every few milliseconds, and writes the file.

#ifndef TFMEMTOP_PROBE_RECORDER_H_
#define TFMEMTOP_PROBE_RECORDER_H_

#include <new>

#include "recording.h"
#include "window.h"

namespace {

class Window {
 public:
  using FindPool = BFCAllocator* (*)(int kind, int index);

  Window(const Wanted& wanted, FindPool find)
      : wanted_(wanted), find_(find), file_(wanted.path), steps_(wanted.function, wanted.steps) {}

  // Reads what is in use as the recording begins. The thread that opens the window waits for that: so all that the
  // script allocates next has a name.
  void Open() {
    told_.size = sizeof told_;
    began_ = Clock(CLOCK_MONOTONIC);
    told_.began_ns = Clock(CLOCK_REALTIME);
    ReadPools();
    Tell();
  }

  void Run() {
    cpu_began_ns_ = Clock(CLOCK_THREAD_CPUTIME_ID);
    try {
      Work();
    } catch (...) {
      End(kByMemory);
      told_.error = ENOMEM;
    }
    {
      std::lock_guard<std::mutex> lock(recording.mutex);
      recording.left.clear();
    }
    told_.closed = told_.error == 0 ? recording.closed.load() : told_.error == ENOMEM ? kByMemory : kByDisk;
    Tell();
  }

 private:
  struct Place {
    int64_t kind, index;
    std::string allocator;  // its name; empty until TensorFlow has made it
    int64_t highest;
  };

  void Work() {
    costs_.Measure();
    Flush(false);
    bool open = true, over = false;
    while (open && told_.error == 0) {
      if (!over) Pause(wanted_.pause_ns);
      // The threads' events are collected one thread after the other. So an event that is recorded meanwhile may be
      // collected before an older one of another thread: events after the beginning of this turn wait for the next.
      const int64_t until = Clock(CLOCK_REALTIME);
      std::vector<TraceMes::Events> drained;
      const int done = Looking([&] {
        drained = Drain(&open);
        return kDone;
      });
      if (done != kDone) throw std::bad_alloc();
      for (const TraceMes::Events& events : drained) Take(events);
      Settle(open ? until : INT64_MAX);
      over = open && IsOver();  // then one more turn collects what was recorded until the end
      const bool due = settled_.size() > kFlush || Clock(CLOCK_MONOTONIC) - flushed_ > kFlushAfter_ns;
      const bool whole = progress.asked.exchange(false) || !open;
      if (whole || due) Flush(whole);
      Tell();
    }
    End(kByDisk);
  }

  // Reads the chunks of the pools. Pools that are made later have nothing in use yet, and all that they allocate is
  // recorded.
  void ReadPools() {
    Header header;
    header.pools = wanted_.places;
    std::vector<PoolRow> pools(wanted_.places);
    std::vector<ChunkRow> chunks;
    for (int64_t i = 0; i < wanted_.places; i++) {
      const auto& place = wanted_.place[i];
      places_.push_back({place.kind, place.index, {}, 0});
      pools[i].at_ns = told_.began_ns;
      BFCAllocator* pool = find_(place.kind, place.index);
      if (pool == nullptr) continue;
      const int64_t held = ReadChunks(pool, i, &pools[i], chunks);
      if (held < 0) continue;
      held_ns_ += held;
      places_.back().allocator = pool->Name();
      places_.back().highest = pools[i].in_use;
    }
    header.realtime_ns = told_.began_ns;
    header.monotonic_ns = began_;
    content_.append(reinterpret_cast<const char*>(&header), sizeof header);
    Append(content_, kPools, pools);
    Append(content_, kChunks, chunks);
  }

  void Take(const TraceMes::Events& all) {
    for (const auto& of_thread : all) {
      const uint32_t thread = threads_.emplace(of_thread.thread.tid, threads_.size() + 1).first->second;
      for (const auto& event : of_thread.events) {
        if (event.start_time <= 0 || event.name.compare(0, 8, "tfmemtop") == 0) continue;
        told_.events++;
        if (event.name.compare(0, 17, "MemoryAllocation#") == 0) {
          TakeMemory(event, thread, 1);
        } else if (event.name.compare(0, 19, "MemoryDeallocation#") == 0) {
          TakeMemory(event, thread, -1);
        } else {
          TakeOther(event, thread);
        }
      }
    }
  }

  void TakeMemory(const TraceMes::Event& event, uint32_t thread, int sign) {
    const std::string_view name = event.name;
    cost_ns_ += costs_.memory_ns;
    const int pool = PoolOf(Field(name, "#allocator_name="));
    if (pool < 0) return;
    told_.allocations++;
    RecordRow row{};
    row.at_ns = event.start_time;
    row.address = Number(Field(name, ",addr="));
    row.requested = Number(Field(name, ",requested_bytes="));
    row.size = sign * Number(Field(name, ",allocation_bytes="));
    row.in_use = Number(Field(name, ",bytes_allocated="));
    row.thread = thread;
    row.pool = pool;
    if (sign > 0) {
      row.operation = strings_.Id(Field(name, ",tf_op="));
      steps_.Allocated(Field(name, ",tf_op="), event.start_time);
      row.shape = strings_.Id(Field(name, ",shape=", true));
      row.region = RegionOf(Field(name, ",region_type="));
      row.dtype = Number(Field(name, ",data_type="));
      row.run = Number(Field(name, ",id="));
    }
    waiting_.push_back(row);
  }

  void TakeOther(const TraceMes::Event& event, uint32_t thread) {
    const std::string_view name = event.name;
    cost_ns_ += costs_.other_ns;
    if (event.end_time < event.start_time) return;  // half of an event that began in one thread and ended in another
    const Steps::Call call{event.start_time, event.end_time};
    if (name.compare(0, 13, "EagerExecute#") == 0) {
      const std::string_view what = Field(name, "#eager_op=");
      if (Field(name, ",is_func=") == "1") {
        steps_.Called(what, call);
        calls_.Executed(thread, call.begin, call.end);
      } else {
        steps_.Eagerly(what, call);
      }
    } else if (name.compare(0, 12, "FunctionRun#") == 0) {
      calls_.Began(thread, call.begin, Number(Field(name, "#id=")));
    } else if (name.compare(0, 11, "SessionRun#") == 0) {
      calls_.Session(thread, call.begin, Number(Field(name, "#id=")));
      steps_.Called("SessionRun", call);
    } else if (const size_t colon = name.rfind(':'); colon != name.npos && colon + 1 < name.size()) {
      const std::string_view type = name.substr(colon + 1);
      steps_.Executed(type, event.start_time);
      if (type.find("PyFunc") != type.npos && ran_python_++ < kMostPython) {
        python_.push_back({event.start_time, event.end_time, thread, strings_.Id(name.substr(0, colon))});
      }
    }
  }

  int PoolOf(std::string_view allocator) {
    for (size_t i = 0; i < places_.size(); i++) {
      if (places_[i].allocator == allocator) return i;
    }
    for (size_t i = 0; i < places_.size(); i++) {
      Place& place = places_[i];
      if (!place.allocator.empty()) continue;
      BFCAllocator* pool = nullptr;
      Looking([&] {
        pool = find_(place.kind, place.index);
        return kDone;
      });
      if (pool != nullptr && pool->Name() == allocator) {
        place.allocator = allocator;
        return i;
      }
    }
    return -1;
  }

  // Moves the records up to `until` to settled_, in the order of time: no older record can follow. On a busy machine far
  // more may have been recorded than was wanted. Then the file ends with the last record that fits.
  void Settle(int64_t until) {
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [](const RecordRow& a, const RecordRow& b) { return a.at_ns < b.at_ns; });
    const auto end = std::find_if(waiting_.begin(), waiting_.end(), [=](const RecordRow& row) { return row.at_ns > until; });
    const auto last = waiting_.begin() + std::min<int64_t>(end - waiting_.begin(), most_records_ - recorded_);
    for (auto row = waiting_.begin(); row != last; ++row) {
      Place& place = places_[row->pool];
      if (wanted_.steps > 0 && row->in_use > place.highest) {  // the step is not over yet
        place.highest = row->in_use;
        risen_ = Clock(CLOCK_MONOTONIC);
      }
      settled_.push_back(*row);
    }
    recorded_ += last - waiting_.begin();
    if (last != end && cut_at_ == INT64_MAX) cut_at_ = last->at_ns;
    waiting_.erase(waiting_.begin(), end);
  }

  // Ends the recording if it has reached a limit; returns whether it has.
  bool IsOver() {
    const int64_t now = Clock(CLOCK_MONOTONIC), lasted = now - began_, longest = wanted_.most_ns;
    const int64_t written = file_.bytes() + settled_.size() * sizeof(RecordRow);
    if (told_.allocations >= wanted_.most_allocations || told_.events >= wanted_.most_events ||
        written >= wanted_.most_bytes) {
      End(kByEvents);
    } else if (wanted_.steps > 0 && told_.events > looked_ && steps_.Enough(false)) {
      End(kByStep);
    } else if (lasted >= longest && (now - risen_ >= longest || lasted >= kRising * longest)) {
      End(kByTime);
    } else {
      looked_ = told_.events;  // while a script rests, its events are not searched again and again
      return false;
    }
    return true;
  }

  // With `whole`, the file is complete up to now: it has the steps and the calls, too.
  void Flush(bool whole) {
    strings_.Flush(content_);
    if (!settled_.empty()) Append(content_, kRecords, settled_);
    settled_.clear();
    if (!python_.empty()) Append(content_, kPython, python_);
    python_.clear();
    if (whole) {
      std::vector<StepRow> rows;
      if (steps_.Enough(true)) {
        const auto& steps = steps_.steps();
        const size_t most = std::min(steps.size(), kMostSteps);
        for (auto step = steps.end() - most; step != steps.end(); ++step) {
          if (step->end < cut_at_) rows.push_back({step->begin, step->end});
        }
      }
      Append(content_, kSteps, rows);
      Append(content_, kCalls, calls_.Made());
      told_.steps = rows.size();
      told_.completed++;
      std::strncpy(told_.function, steps_.function().c_str(), sizeof told_.function - 1);
    }
    if (!content_.empty()) told_.error = file_.Write(content_);
    if (told_.error == 0) told_.bytes = file_.bytes();
    content_.clear();
    flushed_ = Clock(CLOCK_MONOTONIC);
  }

  void Tell() {
    // The processor time of the window's own thread counts, too: a script that keeps all cores busy loses that time.
    const int64_t cpu_ns = cpu_began_ns_ < 0 ? 0 : Clock(CLOCK_THREAD_CPUTIME_ID) - cpu_began_ns_;
    told_.cost_ns = held_ns_ + static_cast<int64_t>(cost_ns_) + cpu_ns;
    std::lock_guard<std::mutex> lock(progress.mutex);
    progress.told = told_;
  }

  static constexpr size_t kFlush = 1 << 14;  // records
  // These three as engine/sources/window_file.py expects.
  static constexpr size_t kMostSteps = 1 << 16, kMostPython = 1 << 16;
  static constexpr int64_t kMostRecords = 1 << 19;
  static constexpr int64_t kRising = 10;  // while more and more is in use, a window may last so many times as long
  static constexpr int64_t kFlushAfter_ns = 1000000000;

  const Wanted wanted_;
  FindPool find_;
  File file_;
  Steps steps_;
  Calls calls_;
  Strings strings_;
  Costs costs_;
  Told told_{};
  std::vector<Place> places_;
  std::unordered_map<int64_t, uint32_t> threads_;
  std::vector<RecordRow> waiting_, settled_;
  std::string content_;
  const int64_t most_records_ = std::min(2 * wanted_.most_allocations, kMostRecords);
  int64_t recorded_ = 0, cut_at_ = INT64_MAX;
  int64_t began_ = 0, risen_ = 0, flushed_ = 0, held_ns_ = 0, looked_ = 0, cpu_began_ns_ = -1;
  size_t ran_python_ = 0;
  std::vector<PythonRow> python_;
  double cost_ns_ = 0;
};

}  // namespace

#endif  // TFMEMTOP_PROBE_RECORDER_H_
