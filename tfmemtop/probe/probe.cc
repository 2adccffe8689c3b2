// Reads TensorFlow's allocators from inside the process that trains.
//
// Built on demand against the TensorFlow it is loaded into, called through ctypes. It only looks:
// no function creates, changes, resets or allocates from an allocator, none lets an exception out,
// and none is willing in a forked child, where locks may be held by threads that are no more.
// Every structure begins with its own size, which the caller fills in; sizes that differ are refused.

#define GOOGLE_CUDA 1  // for the GPU's half of TensorFlow's headers, which needs no CUDA

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/bfc_allocator.h"
#include "tensorflow/core/common_runtime/process_state.h"
#include "tensorflow/core/protobuf/bfc_memory_map.pb.h"
#ifndef TFMEMTOP_NO_GPU  // set where TensorFlow was built without
#include "tensorflow/core/common_runtime/gpu/gpu_id_manager.h"
#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
#endif

namespace {

using tensorflow::Allocator;
using tensorflow::BFCAllocator;
using tensorflow::ProcessState;

constexpr uint32_t kVersion = 1;
constexpr int kGpu = 0, kPinned = 1, kCpu = 2;
constexpr int kGpus = 64;
constexpr int kGrowths = 64;
constexpr int kCells = 2048;
constexpr int kRegions = 512;
constexpr int kBins = 32;
constexpr int kSizes = 64;
constexpr int kBiggest = 20;
constexpr int64_t kUnknown = -1;

// What a function says about its work; above 0 it is done.
constexpr int kDone = 1, kNothing = 0, kRefused = -1, kFailed = -2, kNoMap = -3;

struct Stats {
  uint64_t size;
  int64_t in_use, peak, pool, peak_pool, limit, allocations, largest_allocation;
  int64_t physical;  // CUDA's ordinal
  int64_t has_map;
  char name[64];
};

struct Growth {
  int64_t at_ns;  // CLOCK_MONOTONIC
  int64_t before, after;
};

struct Taken {
  uint64_t size;
  Stats now;
  int64_t high, samples, growths, lost;
  Growth growth[kGrowths];
};

struct Region {
  uint64_t address;
  int64_t size, in_use, chunks, chunks_in_use, cells;
};

struct Bin {
  int64_t size, chunks, chunks_in_use, bytes, bytes_in_use;
};

struct Biggest {
  uint64_t address;
  int64_t size, requested;
};

struct Map {
  uint64_t size;
  uint64_t only_region;  // its address, or 0 for all
  int64_t cells_wanted;
  int64_t pool, in_use, chunks, chunks_in_use, largest_free, regions_found, cost_ns;
  int64_t cells, regions, bins, biggests;
  uint8_t cell[kCells];
  Region region[kRegions];
  Bin bin[kBins];
  int64_t sizes[kSizes];  // chunks in use of 2^i bytes up to twice that
  Biggest biggest[kBiggest];
};

// Trivially destructible, as all that is static here: the thread may outlive static destruction.
struct Slot {
  std::mutex mutex;
  std::atomic<Allocator*> allocator{nullptr};
  int64_t high = kUnknown, samples = 0, peak = kUnknown, pool = kUnknown;
  int64_t growths = 0, lost = 0;
  Growth growth[kGrowths];
};

Slot slots[kGpus + 2];
std::atomic<bool> forked{false}, stopping{false}, running{false};

int64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

// TensorFlow's getters create what is not there yet, so the lists behind them are read instead,
// under their own locks. They are protected members, open to whoever derives.
#ifndef TFMEMTOP_NO_GPU
struct Gpus : tensorflow::GPUProcessState {
  static Allocator* Find(int index, bool pinned) {
    GPUProcessState* state = GPUProcessState::singleton();
    tensorflow::mutex_lock lock(state->*(&Gpus::mu_));
    auto& list = state->*(pinned ? &Gpus::gpu_host_allocators_ : &Gpus::gpu_allocators_);
    return index < static_cast<int>(list.size()) ? list[index].allocator.get() : nullptr;
  }

  static int Count() { return std::min(singleton()->NumGPUAllocators(), kGpus); }

  // CUDA's ordinal.
  static int64_t Ordinal(int index) {
    tsl::PlatformDeviceId id;
    auto status = tensorflow::GpuIdManager::TfToPlatformDeviceId(tsl::TfDeviceId(index), &id);
    return status.ok() ? id.value() : kUnknown;
  }
};
#else
struct Gpus {
  static Allocator* Find(int, bool) { return nullptr; }
  static int Count() { return 0; }
  static int64_t Ordinal(int) { return kUnknown; }
};
#endif

struct Cpus : ProcessState {
  static Allocator* Find() {
    ProcessState* state = ProcessState::singleton();
    tensorflow::mutex_lock lock(state->*(&Cpus::mu_));
    auto& list = state->*(&Cpus::cpu_allocators_);
    return list.empty() ? nullptr : list[0];
  }
};

Slot* SlotOf(int kind, int index) {
  if (kind == kGpu && 0 <= index && index < kGpus) return &slots[index];
  if ((kind == kPinned || kind == kCpu) && index == 0) return &slots[kGpus + kind - kPinned];
  return nullptr;
}

// The allocator, if TensorFlow has made it. It then lives as long as the process.
Allocator* Find(int kind, int index) {
  Slot* slot = SlotOf(kind, index);
  if (slot == nullptr) return nullptr;
  Allocator* known = slot->allocator.load(std::memory_order_acquire);
  if (known == nullptr) {
    known = kind == kCpu ? Cpus::Find() : Gpus::Find(index, kind == kPinned);
    slot->allocator.store(known, std::memory_order_release);
  }
  return known;
}

struct Figures {
  int64_t in_use, peak, pool;
};

// Keeps the highest and notes a pool that grew or shrank. Under the slot's lock, as the reading of the figures
// itself, lest older ones come after newer ones. TensorFlow knows nothing of that lock.
void Observe(Slot* slot, const Figures& now) {
  int64_t high = now.in_use;
  // A peak that rose since the last look was reached in between, however short it was.
  if (slot->peak != kUnknown && now.peak > slot->peak) high = std::max(high, now.peak);
  slot->high = std::max(slot->high, high);
  slot->peak = now.peak;
  slot->samples++;
  if (slot->pool != kUnknown && now.pool != slot->pool) {
    if (slot->growths < kGrowths) {
      slot->growth[slot->growths++] = {Now(), slot->pool, now.pool};
    } else {
      slot->lost++;
    }
  }
  slot->pool = now.pool;
}

bool Read(int kind, int index, Allocator* allocator, Stats* out) {
  auto stats = allocator->GetStats();
  if (!stats) return false;
  out->in_use = stats->bytes_in_use;
  out->peak = stats->peak_bytes_in_use;
  out->pool = stats->pool_bytes ? *stats->pool_bytes : kUnknown;
  out->peak_pool = stats->peak_pool_bytes ? *stats->peak_pool_bytes : kUnknown;
  out->limit = stats->bytes_limit ? *stats->bytes_limit : kUnknown;
  out->allocations = stats->num_allocs;
  out->largest_allocation = stats->largest_alloc_size;
  out->physical = kind == kGpu ? Gpus::Ordinal(index) : kUnknown;
  out->has_map = dynamic_cast<BFCAllocator*>(allocator) != nullptr;
  std::string name = allocator->Name();
  std::memset(out->name, 0, sizeof out->name);
  std::memcpy(out->name, name.data(), std::min(name.size(), sizeof out->name - 1));
  return true;
}

// Runs `work` where no exception passes, and never in a forked child.
template <class Work>
int Guarded(Work work) {
  if (forked.load(std::memory_order_relaxed)) return kRefused;
  try {
    return work();
  } catch (...) {
    return kFailed;
  }
}

void* Sample(void* period_ns) {
  const int64_t period = reinterpret_cast<intptr_t>(period_ns);
  pthread_setname_np(pthread_self(), "tfmemtop");
  int64_t next = Now();
  while (!stopping.load(std::memory_order_relaxed)) {
    Guarded([] {
      for (int kind : {kGpu, kPinned, kCpu}) {
        for (int index = 0; Slot* slot = SlotOf(kind, index); index++) {
          // Only those that somebody reads, and has found before.
          Allocator* allocator = slot->allocator.load(std::memory_order_acquire);
          if (allocator == nullptr) continue;
          std::lock_guard<std::mutex> lock(slot->mutex);
          auto stats = allocator->GetStats();
          if (!stats) continue;
          Observe(slot, {stats->bytes_in_use, stats->peak_bytes_in_use,
                         stats->pool_bytes ? *stats->pool_bytes : kUnknown});
        }
      }
      return kDone;
    });
    // What was missed, as while the machine slept, is not made up for.
    next = std::max(next + period, Now());
    timespec until{next / 1000000000, next % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  running.store(false, std::memory_order_release);
  return nullptr;
}

void Forked() {
  forked.store(true);
  running.store(false);
}

// Waits a twentieth of a second at most: a process that ends is not held up.
void Stop() {
  stopping.store(true);
  for (int tries = 0; running.load(std::memory_order_acquire) && tries < 50; tries++) {
    timespec pause{0, 1000000};
    nanosleep(&pause, nullptr);
  }
}

__attribute__((constructor)) void Loaded() { pthread_atfork(nullptr, nullptr, Forked); }
__attribute__((destructor)) void Unloading() { Stop(); }

#ifdef TFMEMTOP_POOL_LOCK
// Where regions begin is in no public structure: a chunk map shows neighbours as one. These members are
// private, which an explicit instantiation may name; their places come from the headers of this TensorFlow.
constexpr auto RegionsMember();
constexpr auto LockMember();
constexpr auto NameMember();
template <auto regions, auto lock, auto name>
struct Open {
  friend constexpr auto RegionsMember() { return regions; }
  friend constexpr auto LockMember() { return lock; }
  friend constexpr auto NameMember() { return name; }
};
template struct Open<&BFCAllocator::region_manager_, &BFCAllocator::TFMEMTOP_POOL_LOCK, &BFCAllocator::name_>;

template <class Mutex>
auto Acquire(Mutex& mutex, int) -> decltype(mutex.lock(), mutex.unlock(), std::unique_lock<Mutex>()) {
  return std::unique_lock<Mutex>(mutex);
}

template <class Mutex>
struct OldLock {
  Mutex& mutex;
  explicit OldLock(Mutex& mutex) : mutex(mutex) { mutex.Lock(); }
  ~OldLock() { mutex.Unlock(); }
};

template <class Mutex>
OldLock<Mutex> Acquire(Mutex& mutex, long) {
  return OldLock<Mutex>(mutex);
}

// Whether members lie where this file thinks: the name does if the bytes there are a string that says
// what Name() says. Looks at the object alone, unless all before that fits.
bool MembersFit(BFCAllocator* pool) {
  const std::string told = pool->Name(), &here = pool->*NameMember();
  if (here.size() != told.size() || here.capacity() < told.size()) return false;
  const char* begin = reinterpret_cast<const char*>(&here);
  const bool inside = begin <= here.data() && here.data() < begin + sizeof here;
  return inside == (told.size() < 16) && std::memcmp(here.data(), told.data(), told.size()) == 0;
}

std::vector<uint64_t> RegionStarts(BFCAllocator* pool) {
  std::vector<uint64_t> starts;
  if (!MembersFit(pool)) return starts;
  auto lock = Acquire(pool->*LockMember(), 0);
  for (const auto& region : (pool->*RegionsMember()).regions()) {
    starts.push_back(reinterpret_cast<uint64_t>(region.ptr()));
  }
  return starts;
}
#else
std::vector<uint64_t> RegionStarts(BFCAllocator*) { return {}; }
#endif

int Log2(uint64_t value) { return value == 0 ? 0 : 63 - __builtin_clzll(value); }

// A cell's share in use, 0 to 255; the ends are exact: 0 is nothing, 255 is all.
uint8_t Share(int64_t used, int64_t size) {
  if (used <= 0) return 0;
  if (used >= size) return 255;
  return static_cast<uint8_t>(std::min<int64_t>(std::max<int64_t>(1, used * 255.0 / size + 0.5), 254));
}

// Regions from the chunks, which come in the order of their addresses, region after region.
std::vector<Region> Regions(const tensorflow::MemoryDump& dump, const std::vector<uint64_t>& starts) {
  std::vector<Region> regions;
  for (const auto& chunk : dump.chunk()) {
    const bool fresh = regions.empty() || regions.back().address + regions.back().size != chunk.address() ||
                       std::binary_search(starts.begin(), starts.end(), chunk.address());
    if (fresh) regions.push_back({chunk.address(), 0, 0, 0, 0, 0});
    Region& region = regions.back();
    region.size += chunk.size();
    region.chunks++;
    if (chunk.in_use()) {
      region.in_use += chunk.size();
      region.chunks_in_use++;
    }
  }
  return regions;
}

// Gives every region cells in proportion to its size, at least one; a single one wanted gets them all.
void DealCells(std::vector<Region>& regions, Map* map) {
  const int64_t wanted = std::min<int64_t>(std::max<int64_t>(map->cells_wanted, 1), kCells);
  const int64_t count = regions.size();
  for (Region& region : regions) {
    if (map->only_region != 0) {
      region.cells = region.address == map->only_region ? wanted : 0;
    } else {
      const double share = map->pool > 0 ? static_cast<double>(region.size) / map->pool : 0;
      region.cells = 1 + static_cast<int64_t>(std::max<int64_t>(0, wanted - count) * share);
    }
    // No cell without a byte: nothing is smaller than 256.
    region.cells = std::min(region.cells, std::max<int64_t>(1, region.size / 256));
    region.cells = std::min(region.cells, kCells - map->cells);
    map->cells += region.cells;
  }
}

void FillCells(const tensorflow::MemoryDump& dump, const std::vector<Region>& regions, Map* map) {
  std::vector<int64_t> used(map->cells);
  auto border = [](const Region& region, int64_t cell) {
    return static_cast<int64_t>(static_cast<__int128>(region.size) * cell / region.cells);
  };
  size_t at = 0;
  int64_t first = 0;
  for (const auto& chunk : dump.chunk()) {
    while (at < regions.size() && chunk.address() >= regions[at].address + regions[at].size) {
      first += regions[at++].cells;
    }
    if (at == regions.size()) break;
    const Region& region = regions[at];
    if (!chunk.in_use() || region.cells == 0) continue;
    int64_t begin = chunk.address() - region.address;
    const int64_t end = begin + chunk.size();
    int64_t cell = static_cast<int64_t>(static_cast<__int128>(begin) * region.cells / region.size);
    for (; begin < end && cell < region.cells; cell++) {
      const int64_t stop = std::min(end, border(region, cell + 1));
      if (stop > begin) {
        used[first + cell] += stop - begin;
        begin = stop;
      }
    }
  }
  int64_t cell = 0;
  for (const Region& region : regions) {
    for (int64_t i = 0; i < region.cells; i++) {
      map->cell[cell] = Share(used[cell], border(region, i + 1) - border(region, i));
      cell++;
    }
  }
}

void CountChunks(const tensorflow::MemoryDump& dump, Map* map) {
  std::vector<Biggest> biggest;
  auto smaller = [](const Biggest& a, const Biggest& b) { return a.size > b.size; };  // the smallest on top
  map->bins = 0;
  for (const auto& chunk : dump.chunk()) {
    const int64_t size = chunk.size();
    const int number = std::min(Log2(std::max<int64_t>(size, 256) >> 8), 20);
    Bin& bin = map->bin[number];
    map->bins = std::max<int64_t>(map->bins, number + 1);
    bin.chunks++;
    bin.bytes += size;
    map->chunks++;
    map->pool += size;
    if (!chunk.in_use()) {
      map->largest_free = std::max(map->largest_free, size);
      continue;
    }
    bin.chunks_in_use++;
    bin.bytes_in_use += size;
    map->chunks_in_use++;
    map->in_use += size;
    map->sizes[Log2(size)]++;
    if (biggest.size() < kBiggest || biggest.front().size < size) {
      if (biggest.size() == kBiggest) {
        std::pop_heap(biggest.begin(), biggest.end(), smaller);
        biggest.pop_back();
      }
      biggest.push_back({chunk.address(), size, chunk.requested_size()});
      std::push_heap(biggest.begin(), biggest.end(), smaller);
    }
  }
  for (int i = 0; i < map->bins; i++) map->bin[i].size = int64_t{256} << i;
  std::sort_heap(biggest.begin(), biggest.end(), smaller);
  map->biggests = biggest.size();
  std::copy(biggest.begin(), biggest.end(), map->biggest);
}

int Condense(BFCAllocator* pool, Map* map) {
  const std::vector<uint64_t> starts = RegionStarts(pool);
  const tensorflow::MemoryDump dump = pool->RecordMemoryMap();
  const uint64_t size = map->size, only = map->only_region;
  const int64_t wanted = map->cells_wanted;
  std::memset(map, 0, sizeof *map);
  map->size = size;
  map->only_region = only;
  map->cells_wanted = wanted;
  CountChunks(dump, map);
  std::vector<Region> regions = Regions(dump, starts);
  map->regions_found = regions.size();
  if (regions.size() > kRegions) regions.resize(kRegions);
  DealCells(regions, map);
  FillCells(dump, regions, map);
  map->regions = regions.size();
  std::copy(regions.begin(), regions.end(), map->region);
  return kDone;
}

}  // namespace

extern "C" {

#define TFMEMTOP_API __attribute__((visibility("default")))

TFMEMTOP_API uint32_t tfmemtop_version() { return kVersion; }

// GPU allocators that TensorFlow has made.
TFMEMTOP_API int tfmemtop_gpus() {
  return Guarded([] { return Gpus::Count(); });
}

TFMEMTOP_API int tfmemtop_stats(int kind, int index, Stats* out) {
  return Guarded([=] {
    if (out == nullptr || out->size != sizeof *out) return kRefused;
    Allocator* allocator = Find(kind, index);
    return allocator != nullptr && Read(kind, index, allocator, out) ? kDone : kNothing;
  });
}

// A reading, and what the sampler saw since the last one.
TFMEMTOP_API int tfmemtop_take(int kind, int index, Taken* out) {
  return Guarded([=] {
    if (out == nullptr || out->size != sizeof *out) return kRefused;
    Allocator* allocator = Find(kind, index);
    if (allocator == nullptr) return kNothing;
    Slot* slot = SlotOf(kind, index);
    std::lock_guard<std::mutex> lock(slot->mutex);
    if (!Read(kind, index, allocator, &out->now)) return kNothing;
    Observe(slot, {out->now.in_use, out->now.peak, out->now.pool});
    out->high = slot->high;
    out->samples = slot->samples;
    out->growths = slot->growths;
    out->lost = slot->lost;
    std::copy(slot->growth, slot->growth + slot->growths, out->growth);
    slot->high = out->now.in_use;
    slot->samples = slot->growths = slot->lost = 0;
    return kDone;
  });
}

TFMEMTOP_API int tfmemtop_map(int kind, int index, Map* map) {
  return Guarded([=] {
    if (map == nullptr || map->size != sizeof *map) return kRefused;
    Allocator* allocator = Find(kind, index);
    if (allocator == nullptr) return kNothing;
    BFCAllocator* pool = dynamic_cast<BFCAllocator*>(allocator);
    if (pool == nullptr) return kNoMap;
    const int64_t began = Now();
    const int result = Condense(pool, map);
    map->cost_ns = Now() - began;
    return result;
  });
}

// Starts the thread that samples every allocator somebody has read, `hz` times a second.
TFMEMTOP_API int tfmemtop_sampler_start(int hz) {
  return Guarded([=] {
    if (hz < 1 || hz > 10000 || running.exchange(true)) return kRefused;
    stopping.store(false);
    sigset_t all, before;
    sigfillset(&all);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, fault);
    // Inherited by the thread: the script's signals go to the script's threads.
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    const intptr_t period_ns = 1000000000 / hz;
    const int error = pthread_create(&thread, &attributes, Sample, reinterpret_cast<void*>(period_ns));
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error != 0) {
      running.store(false);
      return kFailed;
    }
    return kDone;
  });
}

// 1 once the thread has ended, 0 if it is busy still and will end.
TFMEMTOP_API int tfmemtop_sampler_stop() {
  return Guarded([] {
    Stop();
    return running.load() ? kNothing : kDone;
  });
}

}  // extern "C"
