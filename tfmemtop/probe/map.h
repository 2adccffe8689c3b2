// A pool's chunk map, condensed from TensorFlow's own list of its chunks into a structure of fixed size.

#ifndef TFMEMTOP_PROBE_MAP_H_
#define TFMEMTOP_PROBE_MAP_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "headers.h"
#include "looking.h"

namespace {

using tsl::BFCAllocator;

constexpr int kCells = 2048;
constexpr int kRegions = 512;
constexpr int kBins = 32;
constexpr int kSizes = 64;
constexpr int kBiggest = 20;

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
  uint64_t only_region;  // a region's address, or 0 for all
  int64_t cells_wanted;
  int64_t pool, in_use, chunks, chunks_in_use, largest_free, regions_found, cost_ns;
  int64_t cells, regions, bins, biggests;
  uint8_t cell[kCells];
  Region region[kRegions];
  Bin bin[kBins];
  int64_t sizes[kSizes];  // counts of chunks in use, of 2^i bytes up to twice that
  Biggest biggest[kBiggest];
};

struct Chunk {
  uint64_t address;
  int64_t size, requested;
  bool in_use, first;  // first of its region
};

// The chunks of a pool at one time. `held_ns` is the time for which the pool's lock was held, -1 if they cannot be read.
struct ChunkCopy {
  std::vector<Chunk> chunks;
  int64_t at_ns = 0, held_ns = -1;
};

#ifdef TFMEMTOP_POOL_LOCK
// TensorFlow's own record of the chunks (RecordMemoryMap) needs protobuf's headers, which take a compiler seconds, and
// does not show where regions begin. These members are private, but an explicit instantiation may name them. Their
// places come from the headers of this TensorFlow.
constexpr auto RegionsMember();
constexpr auto LockMember();
constexpr auto NameMember();
constexpr auto ChunksMember();
template <auto regions, auto lock, auto name, auto chunks>
struct Open {
  friend constexpr auto RegionsMember() { return regions; }
  friend constexpr auto LockMember() { return lock; }
  friend constexpr auto NameMember() { return name; }
  friend constexpr auto ChunksMember() { return chunks; }
};
template struct Open<&BFCAllocator::region_manager_, &BFCAllocator::TFMEMTOP_POOL_LOCK, &BFCAllocator::name_,
                     &BFCAllocator::chunks_>;

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

// Whether members lie where this file expects them: the name does if the bytes there are a string equal to Name().
// Reads outside of the object only if all that was compared before fits.
bool MembersFit(BFCAllocator* pool) {
  const std::string told = pool->Name(), &here = pool->*NameMember();
  if (here.size() != told.size() || here.capacity() < told.size()) return false;
  const char* begin = reinterpret_cast<const char*>(&here);
  const bool inside = begin <= here.data() && here.data() < begin + sizeof here;
  return inside == (told.size() < 16) && std::memcmp(here.data(), told.data(), told.size()) == 0;
}

// Copies the chunks in the order of their addresses, region after region, while the pool's lock is held. Nothing is
// allocated meanwhile, since room was made before.
ChunkCopy CopyChunks(BFCAllocator* pool) {
  ChunkCopy copy;
  if (!MembersFit(pool)) return copy;
  for (size_t room = 1024;; room *= 2) {
    copy.chunks.reserve(room);
    auto lock = Acquire(pool->*LockMember(), 0);
    const int64_t began = Clock(CLOCK_MONOTONIC);
    const auto& all = pool->*ChunksMember();
    if (all.size() > room) {
      room = all.size();
      continue;
    }
    copy.at_ns = Clock(CLOCK_REALTIME);
    for (const auto& region : (pool->*RegionsMember()).regions()) {
      bool first = true;
      for (size_t at = region.get_handle(region.ptr()); at < all.size() && copy.chunks.size() < room; at = all[at].next) {
        copy.chunks.push_back({reinterpret_cast<uint64_t>(all[at].ptr), static_cast<int64_t>(all[at].size),
                               static_cast<int64_t>(all[at].requested_size), all[at].allocation_id != -1, first});
        first = false;
      }
    }
    copy.held_ns = Clock(CLOCK_MONOTONIC) - began;
    return copy;
  }
}
#else
ChunkCopy CopyChunks(BFCAllocator*) { return {}; }
#endif

int Log2(uint64_t value) { return value == 0 ? 0 : 63 - __builtin_clzll(value); }

// A cell's share in use, 0 to 255. The ends are exact: 0 means that nothing is in use, 255 that all is.
uint8_t Share(int64_t used, int64_t size) {
  if (used <= 0) return 0;
  if (used >= size) return 255;
  return static_cast<uint8_t>(std::min<int64_t>(std::max<int64_t>(1, used * 255.0 / size + 0.5), 254));
}

// Makes regions of the chunks, which come in the order of their addresses, region after region.
std::vector<Region> Regions(const std::vector<Chunk>& chunks) {
  std::vector<Region> regions;
  for (const Chunk& chunk : chunks) {
    if (chunk.first) regions.push_back({chunk.address, 0, 0, 0, 0, 0});
    Region& region = regions.back();
    region.size += chunk.size;
    region.chunks++;
    if (chunk.in_use) {
      region.in_use += chunk.size;
      region.chunks_in_use++;
    }
  }
  return regions;
}

// Gives every region cells in proportion to its size, at least one. If only one region is wanted, it gets all cells.
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
    // No cell may be without a byte: no chunk is smaller than 256 bytes.
    region.cells = std::min(region.cells, std::max<int64_t>(1, region.size / 256));
    region.cells = std::min(region.cells, kCells - map->cells);
    map->cells += region.cells;
  }
}

void FillCells(const std::vector<Chunk>& chunks, const std::vector<Region>& regions, Map* map) {
  std::vector<int64_t> used(map->cells);
  auto border = [](const Region& region, int64_t cell) {
    return static_cast<int64_t>(static_cast<__int128>(region.size) * cell / region.cells);
  };
  // Chunks are counted to their regions in the order in which regions were made of them, not by address. So no chunk
  // lies outside its region, whatever the record contains.
  size_t at = 0;
  int64_t first = 0, passed = 0;
  for (const Chunk& chunk : chunks) {
    if (passed == regions[at].chunks) {
      first += regions[at].cells;
      passed = 0;
      if (++at == regions.size()) break;
    }
    passed++;
    const Region& region = regions[at];
    if (!chunk.in_use || chunk.size <= 0 || region.cells == 0) continue;
    int64_t begin = chunk.address - region.address;
    const int64_t end = begin + chunk.size;
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

void CountChunks(const std::vector<Chunk>& chunks, Map* map) {
  std::vector<Biggest> biggest;
  auto smaller = [](const Biggest& a, const Biggest& b) { return a.size > b.size; };  // the heap's top is the smallest
  map->bins = 0;
  for (const Chunk& chunk : chunks) {
    const int64_t size = chunk.size;
    const int number = std::min(Log2(std::max<int64_t>(size, 256) >> 8), 20);
    Bin& bin = map->bin[number];
    map->bins = std::max<int64_t>(map->bins, number + 1);
    bin.chunks++;
    bin.bytes += size;
    map->chunks++;
    map->pool += size;
    if (!chunk.in_use) {
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
      biggest.push_back({chunk.address, size, chunk.requested});
      std::push_heap(biggest.begin(), biggest.end(), smaller);
    }
  }
  for (int i = 0; i < map->bins; i++) map->bin[i].size = int64_t{256} << i;
  std::sort_heap(biggest.begin(), biggest.end(), smaller);
  map->biggests = biggest.size();
  std::copy(biggest.begin(), biggest.end(), map->biggest);
}

// Fills *map*, in which the caller has set what is wanted; returns false if the chunks cannot be read.
bool Condense(BFCAllocator* pool, Map* map) {
  const ChunkCopy copy = CopyChunks(pool);
  if (copy.held_ns < 0) return false;
  const uint64_t size = map->size, only = map->only_region;
  const int64_t wanted = map->cells_wanted;
  std::memset(map, 0, sizeof *map);
  map->size = size;
  map->only_region = only;
  map->cells_wanted = wanted;
  CountChunks(copy.chunks, map);
  std::vector<Region> regions = Regions(copy.chunks);
  map->regions_found = regions.size();
  if (regions.size() > kRegions) regions.resize(kRegions);
  DealCells(regions, map);
  FillCells(copy.chunks, regions, map);
  map->regions = regions.size();
  std::copy(regions.begin(), regions.end(), map->region);
  return true;
}

}  // namespace

#endif  // TFMEMTOP_PROBE_MAP_H_
