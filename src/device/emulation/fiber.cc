// SPDX-License-Identifier: Apache-2.0
// Never compiled with ThreadSanitizer, which would take what this does with stacks for races.
#include "device/emulation/fiber.h"

#include <sys/mman.h>

#include <cstdint>

#include "base/status.h"

#if defined(RECMILL_UNDER_TSAN)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__)
#error "the switch of stacks is written for x86-64"
#endif

// recmill_switch_stack(void** from, void* to): pushes what the calling convention makes a function
// keep, and goes on where `to` was. recmill_enter_fiber(): what a new stack goes on with. Outside
// of any function, so that no compiler clones them or changes their registers.
asm(R"(
.text
.globl recmill_switch_stack
.hidden recmill_switch_stack
.type recmill_switch_stack, @function
.align 16
recmill_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size recmill_switch_stack, . - recmill_switch_stack

.globl recmill_enter_fiber
.hidden recmill_enter_fiber
.type recmill_enter_fiber, @function
.align 16
recmill_enter_fiber:
  movq %r12, %rdi
  movq %r13, %rsi
  xorl %ebp, %ebp
  callq *%rbx
  ud2
.size recmill_enter_fiber, . - recmill_enter_fiber
)");
extern "C" void recmill_switch_stack(void** from, void* to);
extern "C" void recmill_enter_fiber();

namespace recmill::emulation {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kStackBytes = 64 * kPage;  // of it only what is used becomes memory

void finish_switch([[maybe_unused]] Context& to) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(to.fake_stack, nullptr, nullptr);
#endif
}

// What runs first on a stack.
void run_entry(Context* context, void (*entry)()) {
  finish_switch(*context);
  entry();
}

}  // namespace

Context context_of_this_thread() {
  Context context;
#if defined(RECMILL_UNDER_TSAN)
  context.thread = __tsan_get_current_fiber();
#endif
#if defined(__SANITIZE_ADDRESS__)
  pthread_attr_t attributes;
  void* stack = nullptr;
  RECMILL_CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
  RECMILL_CHECK(pthread_attr_getstack(&attributes, &stack, &context.stack_bytes) == 0);
  pthread_attr_destroy(&attributes);
  context.stack = stack;
#endif
  return context;
}

void switch_context(Context& from, Context& to, [[maybe_unused]] bool ends) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(ends ? nullptr : &from.fake_stack, to.stack, to.stack_bytes);
#endif
#if defined(RECMILL_UNDER_TSAN)
  __tsan_switch_to_fiber(to.thread, __tsan_switch_to_fiber_no_sync);
#endif
  recmill_switch_stack(&from.top, to.top);
  finish_switch(from);
}

void release_of([[maybe_unused]] Context& context, [[maybe_unused]] void* place) {
#if defined(RECMILL_UNDER_TSAN)
  void* const self = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(context.thread, __tsan_switch_to_fiber_no_sync);
  __tsan_release(place);
  __tsan_switch_to_fiber(self, __tsan_switch_to_fiber_no_sync);
#endif
}

Fiber::~Fiber() {
  if (context_.stack == nullptr) return;
#if defined(RECMILL_UNDER_TSAN)
  __tsan_destroy_fiber(context_.thread);
#endif
  munmap(const_cast<char*>(static_cast<const char*>(context_.stack)) - kPage, kStackBytes + kPage);
}

void Fiber::start(void (*entry)()) {
  if (context_.stack == nullptr) {
    void* mapped = mmap(nullptr, kStackBytes + kPage, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    RECMILL_CHECK(mapped != MAP_FAILED);
    RECMILL_CHECK(mprotect(mapped, kPage, PROT_NONE) == 0);  // stacks grow downwards, into it
    context_.stack = static_cast<char*>(mapped) + kPage;
    context_.stack_bytes = kStackBytes;
#if defined(RECMILL_UNDER_TSAN)
    context_.thread = __tsan_create_fiber(0);
#endif
  }
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(context_.stack, kStackBytes);
#endif
  // As recmill_switch_stack() leaves a stack: six registers below where it returns to.
  const auto bottom = reinterpret_cast<uintptr_t>(context_.stack);
  auto* top = reinterpret_cast<uintptr_t*>(bottom + kStackBytes - 64);
  *--top = reinterpret_cast<uintptr_t>(&recmill_enter_fiber);
  *--top = 0;                                        // rbp
  *--top = reinterpret_cast<uintptr_t>(&run_entry);  // rbx
  *--top = reinterpret_cast<uintptr_t>(&context_);   // r12
  *--top = reinterpret_cast<uintptr_t>(entry);       // r13
  *--top = 0;                                        // r14
  *--top = 0;                                        // r15
  context_.top = top;
  context_.fake_stack = nullptr;
}

}  // namespace recmill::emulation
