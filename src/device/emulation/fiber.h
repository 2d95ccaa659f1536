// SPDX-License-Identifier: Apache-2.0
// Stacks that one thread of the operating system switches between by itself. The sanitizers are
// told of each switch, so that a fiber is a thread to them.
#pragma once

#include <cstddef>

namespace recmill::emulation {

/// The side of a switch that is left: where it goes on, and what sanitizers know of it.
struct Context {
  void* top = nullptr;     // of its stack, while it is not running
  void* thread = nullptr;  // ThreadSanitizer's name of it
  const void* stack = nullptr;
  size_t stack_bytes = 0;
  void* fake_stack = nullptr;  // AddressSanitizer's
};

/// The context of the calling thread of the operating system.
Context context_of_this_thread();

/// Leaves `from`, which is running, for `to`; returns when somebody switches to `from`. With
/// `ends`, nobody will. No order of memory between the two, as ThreadSanitizer sees it.
void switch_context(Context& from, Context& to, bool ends = false);

/// What the context, which never runs again, has done comes before who acquires `place`
/// (happens_before.h).
void release_of(Context& context, void* place);

/// A stack of its own. Aborts when the machine does not have the memory.
class Fiber {
 public:
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// From now on the first switch to it calls entry(), which must not return. What was on the
  /// stack is forgotten, no destructor runs.
  void start(void (*entry)());
  Context& context() { return context_; }

 private:
  Context context_;
};

}  // namespace recmill::emulation
