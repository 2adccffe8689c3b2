// Keeps the lines in which TensorFlow reports that an allocator found no room, in a file that the engine reads.
//
// TensorFlow's own output stays as it is. Where absl's log is missing, or another one is used, nothing is kept.

#ifndef TFMEMTOP_PROBE_LOG_LINES_H_
#define TFMEMTOP_PROBE_LOG_LINES_H_

#include "looking.h"

#if !defined(TFMEMTOP_NO_LOG_LINES) && __has_include("absl/log/log_sink_registry.h")
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "absl/log/log_sink_registry.h"

namespace {

constexpr size_t kLongestLine = 512, kMostKept = 1 << 20;  // bytes

class LogLines final : public absl::LogSink {
 public:
  std::atomic<const char*> path{nullptr};

  // TensorFlow's threads call it, with locks of TensorFlow's. It allocates nothing and takes no lock.
  void Send(const absl::LogEntry& entry) override {
    if (forked.load(std::memory_order_relaxed) || entry.source_basename() != "bfc_allocator.cc") return;
    const std::string_view text(entry.text_message().data(), entry.text_message().size());
    if (text.find("ran out of memory trying to allocate") == text.npos) return;
    const int error = errno;
    Keep(text.substr(0, std::min(text.find('\n'), kLongestLine)));
    errno = error;
  }

 private:
  // Appends the time, in ns of CLOCK_MONOTONIC, and `text`. The file is opened for each line: a script may close all
  // descriptors, and open files of its own in their places. If the line cannot be written, it is lost.
  void Keep(std::string_view text) {
    char line[kLongestLine + 32];
    size_t size = std::snprintf(line, 32, "%lld ", static_cast<long long>(Now()));
    size += text.copy(line + size, text.size());
    line[size++] = '\n';
    if (kept_.fetch_add(size, std::memory_order_relaxed) + size > kMostKept) return;
    const int file = open(path.load(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (file < 0) return;
    [[maybe_unused]] const auto written = write(file, line, size);
    close(file);
  }

  std::atomic<size_t> kept_{0};
};

// Writes to the file `path` from now on. The names of earlier files are never freed: a thread may be opening one.
int KeepLogLines(const char* path) {
  static LogLines* lines = new LogLines;
  const char* copy = strdup(path);
  if (copy == nullptr) return kFailed;
  if (lines->path.exchange(copy) == nullptr) absl::AddLogSink(lines);
  return kDone;
}

}  // namespace
#else
namespace {

int KeepLogLines(const char*) { return kNothing; }

}  // namespace
#endif

#endif  // TFMEMTOP_PROBE_LOG_LINES_H_
