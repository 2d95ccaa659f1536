// SPDX-License-Identifier: Apache-2.0
// How the ranks of a window lay out the memory that they share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>

namespace recmill {

/// A counter of fences for each rank, then the memory of each rank. Lies in zeroed memory that one
/// process or several have mapped: it holds no pointer that others read.
class SharedBlock {
 public:
  /// What `ranks` ranks with `bytes` each take.
  static size_t size(int ranks, size_t bytes) {
    return static_cast<size_t>(ranks) * (sizeof(Line) + padded(bytes));
  }
  /// `memory`: [size(ranks, bytes)], aligned to 64 bytes.
  SharedBlock(std::byte* memory, int ranks, size_t bytes)
      : memory_(memory), ranks_(ranks), bytes_(bytes) {}

  std::span<std::byte> of(int rank) const {
    return {memory_ + ranks_ * sizeof(Line) + static_cast<size_t>(rank) * padded(bytes_), bytes_};
  }
  /// `rank` has come to its fence number `fence`, counted from 1.
  void arrive(int rank, uint64_t fence, uint64_t what) const {
    line(rank).what[fence % 2].store(what, std::memory_order_relaxed);
    line(rank).fences.store(fence, std::memory_order_release);
  }
  /// Looks for some microseconds at most.
  bool have_all_arrived(uint64_t fence) const {
    for (int rank = 0; rank < ranks_; ++rank) {
      for (int look = 0; !has_arrived(rank, fence); ++look) {
        if (look == kLooks) return false;
        __builtin_ia32_pause();
      }
    }
    return true;
  }
  std::set<int> missing(uint64_t fence) const {
    std::set<int> ranks;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (!has_arrived(rank, fence)) ranks.insert(rank);
    }
    return ranks;
  }
  /// When all have arrived: a rank that came with something else, and what that is. Nobody gets
  /// further than one fence ahead, whence the two places.
  struct Stray {
    int rank = 0;
    uint64_t what = 0;
  };
  std::optional<Stray> stray(uint64_t fence, uint64_t what) const {
    for (int rank = 0; rank < ranks_; ++rank) {
      const uint64_t other = line(rank).what[fence % 2].load(std::memory_order_relaxed);
      if (other != what) return Stray{rank, other};
    }
    return std::nullopt;
  }

 private:
  struct alignas(64) Line {
    std::atomic<uint64_t> fences, what[2];
  };
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
  static constexpr int kLooks = 64;

  static size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }
  Line& line(int rank) const { return reinterpret_cast<Line*>(memory_)[rank]; }
  bool has_arrived(int rank, uint64_t fence) const {
    return line(rank).fences.load(std::memory_order_acquire) >= fence;
  }

  std::byte* memory_;
  int ranks_;
  size_t bytes_;
};

}  // namespace recmill
