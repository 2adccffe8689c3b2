// Copies TensorFlow's own list of a pool's chunks.

#ifndef TFMEMTOP_PROBE_CHUNKS_H_
#define TFMEMTOP_PROBE_CHUNKS_H_

#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "headers.h"
#include "looking.h"

namespace {

using tsl::BFCAllocator;

struct Chunk {
  uint64_t address;
  int64_t size, requested;
  bool in_use;
};

// The chunks of a pool at one time. `held_ns` is the time for which the pool's lock was held, -1 if they cannot be read.
struct ChunkCopy {
  std::vector<Chunk> chunks;
  int64_t at_ns = 0, held_ns = -1;
};

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
      for (size_t at = region.get_handle(region.ptr()); at < all.size() && copy.chunks.size() < room; at = all[at].next) {
        copy.chunks.push_back({reinterpret_cast<uint64_t>(all[at].ptr), static_cast<int64_t>(all[at].size),
                               static_cast<int64_t>(all[at].requested_size), all[at].allocation_id != -1});
      }
    }
    copy.held_ns = Clock(CLOCK_MONOTONIC) - began;
    return copy;
  }
}

}  // namespace

#endif  // TFMEMTOP_PROBE_CHUNKS_H_
