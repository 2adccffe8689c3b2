// For tests: records all allocation events of this process, and says what its CPU allocator has at the end.

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
    for (auto& event : thread.events) {
      bool wanted = false;
      for (const char* kind : {"Memory", "FunctionRun#", "SessionRun#"}) wanted |= event.name.rfind(kind, 0) == 0;
      if (!wanted) continue;
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
