// SPDX-License-Identifier: Apache-2.0
// What ThreadSanitizer is told of the order that kernels may rely on. Without it: nothing.
#pragma once

#if defined(RECMILL_UNDER_TSAN)
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace recmill::emulation {

/// What is done before release() comes before what is done after acquire() of the same place.
inline void release([[maybe_unused]] void* place) {
#if defined(RECMILL_UNDER_TSAN)
  __tsan_release(place);
#endif
}
inline void acquire([[maybe_unused]] void* place) {
#if defined(RECMILL_UNDER_TSAN)
  __tsan_acquire(place);
#endif
}

/// While it lives, what this thread does to memory is nobody's business: the emulator's own.
class Unseen {
 public:
  Unseen() {
#if defined(RECMILL_UNDER_TSAN)
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
  }
  ~Unseen() {
#if defined(RECMILL_UNDER_TSAN)
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
  }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
};

/// A place that some threads meet at, again and again. Two of them in turn: who is fast may already
/// be on its way to the next meeting, of which the slow must not learn.
class Meetings {
 public:
  /// The thread comes. Returns what it must give leave().
  void* arrive() {
    void* place = &places_[held_ & 1];
    release(place);
    return place;
  }
  /// All have come.
  void hold() { ++held_; }
  static void leave(void* place) { acquire(place); }

 private:
  char places_[2] = {};
  unsigned held_ = 0;
};

}  // namespace recmill::emulation
