// Windows: short times in which TensorFlow's own allocation events are recorded, and the files for these events.
//
// Layout of a file, little endian: a Header, then sections, each a Section and its payload, padded to 8 bytes:
//   1 POOLS    for each pool a PoolRow. Records from before `at_ns` are left out: the chunks contain their effect.
//   2 CHUNKS   a ChunkRow for each chunk in use at that moment.
//   3 STRINGS  new strings, each a u32 length and its bytes. Ids count through the file from 1 on; 0 is "none".
//   4 RECORDS  a RecordRow for each allocation or deallocation, by time.
//   5 STEPS    a StepRow for each whole call, until now, of the function that the window is about.
//   7 CALLS    a CallRow for each function or session that a thread has run and waited for, by the time of its start.
// Where events are lost, `in_use`, the allocator's own figure, does not follow from the record before.
// Sections 3 to 7 may repeat; of STEPS and CALLS the last one counts.

#ifndef TFMEMTOP_PROBE_WINDOW_H_
#define TFMEMTOP_PROBE_WINDOW_H_

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "calls.h"
#include "chunks.h"
#include "looking.h"
#include "steps.h"

namespace {

constexpr int kPlaces = 20;

struct Header {
  char magic[8] = {'T', 'F', 'M', 'W', 'I', 'N', '2', 0};
  uint32_t header_size = 64, record_size = 64, chunk_size = 32, pools = 0;
  int64_t realtime_ns = 0, monotonic_ns = 0;
  int64_t rest[3] = {};
};

struct Section {
  uint32_t kind, count;
  uint64_t bytes;
};

struct PoolRow {
  int64_t in_use, pool, at_ns, rest;
};

struct ChunkRow {
  uint64_t address;
  int64_t size, requested;
  uint16_t pool, rest[3];
};

struct RecordRow {
  int64_t at_ns;
  uint64_t address;
  int64_t requested, size, in_use;  // size is negative for a deallocation
  uint32_t thread, operation, shape;
  uint16_t pool;
  uint8_t region, dtype;
  int64_t run;  // TensorFlow's number of the run of a function or session that allocates; 0 for a deallocation
};


struct StepRow {
  int64_t begin_ns, end_ns;
};

// A thread runs an operation that calls Python. What that returns is allocated without the operation's name.
struct PythonRow {
  int64_t begin_ns, end_ns;
  uint32_t thread, operation;
};

static_assert(sizeof(Header) == 64 && sizeof(ChunkRow) == 32 && sizeof(RecordRow) == 64 && sizeof(PoolRow) == 32);

enum SectionKind : uint32_t { kPools = 1, kChunks, kStrings, kRecords, kSteps, kCalls = 7, kPython };

// Why a window ended; agent/native_windows.py has the same numbers.
enum Closed : int64_t { kOpen, kByStep, kByTime, kByEvents, kByProfiler, kByExit, kByDisk, kByMemory };

// What the caller requests of a window. The limits are those of the whole window, times are in ns.
struct Wanted {
  uint64_t size;
  int64_t steps, most_ns, most_allocations, most_events, most_bytes, pause_ns, places;
  struct {
    int64_t kind, index;
  } place[kPlaces];
  char function[256];  // the Python name of the step's function; empty if it is not known
  char path[4096];
};

// How far a window is.
struct Told {
  uint64_t size;
  int64_t running, closed, error;  // errno
  int64_t bytes, events, allocations, steps, began_ns, cost_ns, completed;
  char function[256];
};

// The value of a field in the name of an event, `Name#key=value,key=value#`.
std::string_view Field(std::string_view name, std::string_view key, bool last = false) {
  const size_t at = name.find(key);
  if (at == name.npos) return {};
  name.remove_prefix(at + key.size());
  const size_t end = last ? name.rfind('#') : name.find_first_of(",#");
  return name.substr(0, end);
}

int64_t Number(std::string_view text) {
  int64_t value = 0;
  const bool negative = !text.empty() && text[0] == '-';
  for (char digit : text.substr(negative)) {
    if (digit < '0' || digit > '9' || value > INT64_MAX / 10 - 1) break;
    value = value * 10 + (digit - '0');
  }
  return negative ? -value : value;
}

uint8_t RegionOf(std::string_view text) {
  constexpr std::string_view known[] = {"", "output", "temp", "persist", "dynamic"};
  for (uint8_t i = 0; i < 5; i++) {
    if (text == known[i]) return i;
  }
  return 5;
}

// Writes sections. No descriptor stays open between two calls: the script may close and reuse any.
class File {
 public:
  explicit File(const char* path) : path_(path) {}

  // Returns errno, or 0. Content that could not be written completely is cut off again.
  int Write(const std::string& content) {
    const int flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | (identity_.st_ino == 0 ? O_CREAT | O_EXCL : 0);
    const int file = open(path_.c_str(), flags, 0600);
    if (file < 0) return errno;
    struct stat found;
    int error = fstat(file, &found) != 0 ? errno : 0;
    if (error == 0 && identity_.st_ino == 0) identity_ = found;
    if (error == 0 && (found.st_ino != identity_.st_ino || found.st_dev != identity_.st_dev)) error = ESTALE;
    if (error == 0) error = Put(file, content);
    if (error == 0) {
      bytes_ += content.size();
    } else if (error != ESTALE) {
      (void)!ftruncate(file, bytes_);
    }
    close(file);
    return error;
  }

  int64_t bytes() const { return bytes_; }

 private:
  int Put(int file, const std::string& content) {
    for (size_t done = 0; done < content.size();) {
      const ssize_t wrote = pwrite(file, content.data() + done, content.size() - done, bytes_ + done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return wrote < 0 ? errno : ENOSPC;
      done += wrote;
    }
    return 0;
  }

  std::string path_;
  struct stat identity_ = {};
  int64_t bytes_ = 0;
};

void Append(std::string& out, SectionKind kind, size_t count, const void* payload, size_t bytes) {
  const Section section{kind, static_cast<uint32_t>(count), (bytes + 7) / 8 * 8};
  out.append(reinterpret_cast<const char*>(&section), sizeof section);
  if (bytes > 0) out.append(static_cast<const char*>(payload), bytes);
  out.append(section.bytes - bytes, '\0');
}

template <class Row>
void Append(std::string& out, SectionKind kind, const std::vector<Row>& rows) {
  Append(out, kind, rows.size(), rows.data(), rows.size() * sizeof(Row));
}

// The strings of a file, each with its number. There are at most kMost of them, each of at most kLongest bytes.
class Strings {
 public:
  uint32_t Id(std::string_view text) {
    if (text.empty() || text == "(null)") return 0;
    text = text.substr(0, kLongest);
    auto found = ids_.find(std::string(text));
    if (found != ids_.end()) return found->second;
    if (ids_.size() >= kMost) return 0;
    const uint32_t length = text.size();
    fresh_.append(reinterpret_cast<const char*>(&length), sizeof length);
    fresh_.append(text);
    count_++;
    return ids_.emplace(text, ids_.size() + 1).first->second;
  }

  void Flush(std::string& out) {
    if (count_ > 0) Append(out, kStrings, count_, fresh_.data(), fresh_.size());
    fresh_.clear();
    count_ = 0;
  }

 private:
  static constexpr size_t kMost = 1 << 16, kLongest = 512;
  std::unordered_map<std::string, uint32_t> ids_;
  std::string fresh_;
  uint32_t count_ = 0;
};

// Reads the chunks in use of a pool, and the time. Returns the ns for which the pool's lock was held, or -1 if they
// cannot be read.
int64_t ReadChunks(BFCAllocator* pool, uint16_t number, PoolRow* row, std::vector<ChunkRow>& chunks) {
  const ChunkCopy copy = CopyChunks(pool);
  if (copy.held_ns < 0) return -1;
  row->at_ns = copy.at_ns;
  for (const Chunk& chunk : copy.chunks) {
    row->pool += chunk.size;
    if (!chunk.in_use) continue;
    row->in_use += chunk.size;
    chunks.push_back({chunk.address, chunk.size, chunk.requested, number, {}});
  }
  return copy.held_ns;
}

}  // namespace

#endif  // TFMEMTOP_PROBE_WINDOW_H_
