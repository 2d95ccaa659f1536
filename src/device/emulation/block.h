// SPDX-License-Identifier: Apache-2.0
// The runtime of one block: its threads as fibers, and where they wait. Never compiled with
// ThreadSanitizer, and made of raw arrays: a template of the standard library may be linked from a
// file that is.
#pragma once

#include <cstdarg>
#include <cstdint>

#include "device/check_grid.h"
#include "device/emulation/emulator.h"
#include "device/emulation/fiber.h"
#include "device/emulation/happens_before.h"
#include "device/emulation/lane_counts.h"
#include "device/emulation/thread_state.h"

namespace recmill::emulation {

// To ThreadSanitizer what one fiber does is in order, and so what blocks do one after the other on
// the same fibers, once a barrier has made theirs known to all: blocks take turns at several sets
// of them.
#if defined(RECMILL_UNDER_TSAN)
constexpr unsigned kFiberSets = 2;
#else
constexpr unsigned kFiberSets = 1;
#endif

/// An error of a kernel, in words.
struct Failure {
  char words[512] = {};
  bool is_one() const { return words[0] != 0; }
};

/// Runs one block after the other on the calling thread of the operating system.
class BlockRunner {
 public:
  BlockRunner() = default;
  ~BlockRunner();

  struct Kernel {
    const char* name = nullptr;
    KernelBody body = nullptr;
    const void* arguments = nullptr;
    Grid grid;
    Turns turns;
  };
  void begin(const Kernel& kernel);
  /// Whether it went well; if not, failure() says why.
  bool run_block(Index block, int64_t number);
  void end();
  const Failure& failure() const { return failure_; }
  Usage usage() const {
    Usage usage = usage_;
    usage.steps = kernel_.turns.most_steps - steps_left_;
    return usage;
  }

  // Of the running thread.
  uint64_t call_warp(const WarpCall& call);
  BarrierVotes call_barrier(bool predicate, Site site);
  void* shared_variable(const void* key, size_t bytes, size_t alignment);
  void* dynamic_shared(size_t alignment, Site site);
  void at_atomic();
  void count_step(const void* place);
  int64_t warp_steps() const { return usage_.warp_steps - steps_before_; }
  [[noreturn]] void fail(Site site, const char* format, ...) __attribute__((format(printf, 3, 4)));
  [[noreturn]] void run_threads();  // what each fiber does

 private:
  enum class Wait { none, warp, barrier, ended };
  struct Thread {
    ThreadState state;
    Wait wait = Wait::none;
    WarpCall call;        // Wait::warp
    Site barrier;         // Wait::barrier
    uint64_t result = 0;  // of its warp's call
  };
  /// Lanes of a warp, a bit each.
  struct Warp {
    uint32_t alive = 0;
    uint32_t waiting = 0;  // Wait::warp
    // [lowest lane of a mask]: of `waiting`, those whose calls are known to be alike.
    uint32_t together[kWarp] = {};
    LaneCounts counts;
  };
  struct Variable {  // in shared memory
    const void* key = nullptr;
    void* data = nullptr;
    Variable* next = nullptr;
  };
  struct MaskMeetings {  // of the lanes of one mask of one warp
    uint32_t warp = 0, mask = 0;
    Meetings meetings;
    MaskMeetings* next = nullptr;
  };

  void place_threads(Index block, int64_t number);
  void free_block();
  void* allocate_shared(size_t bytes, size_t alignment);
  unsigned random_below(unsigned n);
  void make_ready(unsigned thread);
  int take_ready();
  void let_others_run();
  void end_thread();
  void check_mask(const WarpCall& call);
  void join(const WarpCall& call);
  void check_lanes(const WarpCall& call);
  bool all_lanes_wait(const WarpCall& call);
  void finish_warp_call(const WarpCall& call);
  Meetings& meetings_of(uint32_t mask);
  void finish_barrier();
  void count_lanes(unsigned warp);
  const Site& site_of(unsigned thread) const;
  [[noreturn]] void stall();
  void report(unsigned thread, Site site, const char* format, va_list values);
  [[noreturn]] void give_up();
  Thread& self() { return threads_[current_]; }
  unsigned warp_of(unsigned thread) const { return thread / kWarp * kWarp; }
  Warp& own_warp() { return warps_[current_ / kWarp]; }

  Kernel kernel_;
  Failure failure_;
  Usage usage_;             // but for its steps
  int64_t steps_left_ = 0;  // until there are too many
  Context host_;
  Warp warps_[kMostThreads / kWarp];
  int64_t steps_before_ = 0;  // warp steps of blocks before this one
  Fiber fibers_[kFiberSets * kMostThreads];
  bool started_[kFiberSets * kMostThreads] = {};  // the fiber is inside run_threads()
  unsigned fiber_of_[kMostThreads] = {};
  Thread threads_[kMostThreads];
  unsigned count_ = 0, alive_ = 0, current_ = 0;
  unsigned ready_[kMostThreads] = {}, first_ready_ = 0, ready_count_ = 0;  // a ring
  unsigned at_barrier_ = 0;
  int votes_ = 0, last_votes_ = 0, last_threads_ = 0;
  uint64_t random_ = 0;
  Meetings* barrier_meetings_ = nullptr;
  MaskMeetings* mask_meetings_ = nullptr;
  Variable* variables_ = nullptr;
  void* dynamic_ = nullptr;
  size_t shared_bytes_ = 0;  // of this block so far
  char* begun_ = nullptr;    // places for release() and acquire()
  char* ended_ = nullptr;
};

}  // namespace recmill::emulation
