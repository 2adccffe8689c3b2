// For tests: records all allocation events of this process, and says what its CPU allocator has at the end.

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "tensorflow/core/common_runtime/bfc_allocator.h"
#include "tensorflow/core/common_runtime/process_state.h"
#include "tensorflow/core/protobuf/bfc_memory_map.pb.h"
#if __has_include("xla/tsl/profiler/backends/cpu/traceme_recorder.h")
#include "xla/tsl/profiler/backends/cpu/traceme_recorder.h"
#else
#include "tsl/profiler/backends/cpu/traceme_recorder.h"
#endif

using tsl::profiler::TraceMeRecorder;

extern "C" {

int recorder_start() { return TraceMeRecorder::Start(2); }

void recorder_stop(const char* path) {
  std::FILE* file = std::fopen(path, "w");
  for (auto& thread : TraceMeRecorder::Stop()) {
    const auto is_awaited = [&](int64_t at) {  // whether Python has called the function that begins, and waits for it
      return std::any_of(thread.events.begin(), thread.events.end(), [&](const auto& event) {
        const bool called = event.name.rfind("EagerExecute#", 0) == 0 && event.name.find("is_func=1") != event.name.npos;
        return called && event.start_time <= at && at <= event.end_time;
      });
    };
    for (auto& event : thread.events) {
      const bool runs = event.name.rfind("FunctionRun#", 0) == 0 && is_awaited(event.start_time);
      if (!runs && event.name.rfind("Memory", 0) != 0 && event.name.rfind("SessionRun#", 0) != 0) continue;
      std::fprintf(file, "%lld %lld %s\n", (long long)thread.thread.tid, (long long)event.start_time,
                   event.name.c_str());
    }
  }
  auto* pool = dynamic_cast<tensorflow::BFCAllocator*>(tensorflow::ProcessState::singleton()->GetCPUAllocator(0));
  if (pool != nullptr) {
    auto stats = pool->GetStats();
    const auto map = pool->RecordMemoryMap();
    long long largest = 0;
    for (const auto& chunk : map.chunk()) {
      if (!chunk.in_use() && chunk.size() > largest) largest = chunk.size();
    }
    std::fprintf(file, "end %lld %lld %lld %lld %lld %lld\n", (long long)stats->bytes_in_use,
                 (long long)stats->peak_bytes_in_use, (long long)stats->pool_bytes.value_or(-1),
                 (long long)stats->peak_pool_bytes.value_or(-1), (long long)stats->num_allocs, largest);
  }
  std::fclose(file);
}
}
