// SPDX-License-Identifier: Apache-2.0
#include "device/emulation/block.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device/emulation/warp_results.h"

namespace recmill::emulation {

__thread const ThreadState* running = nullptr;

namespace {

__thread BlockRunner* runner = nullptr;

// How many more basic blocks of code may be come to, before the runner wants to know; outside of
// kernels nobody does. What is done most often of all: one decrement, and a look at its sign.
constexpr int64_t kUnlimited = INT64_MAX;
__thread int64_t steps_until_told = kUnlimited;

void enter() {
  runner->run_threads();
}

// At a distance from each other that lets AddressSanitizer see accesses between them.
void* allocate(size_t bytes, size_t alignment) {
  void* data = nullptr;
  RECMILL_CHECK(posix_memalign(&data, alignment < 16 ? 16 : alignment, bytes == 0 ? 1 : bytes) ==
                0);
  return data;
}

bool same(const Site& a, const Site& b) {
  return a.line == b.line && a.column == b.column &&
         (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

bool alike(const WarpCall& a, const WarpCall& b) {
  return a.op == b.op && a.mask == b.mask && a.width == b.width && same(a.site, b.site);
}

unsigned lowest(uint32_t lanes) {
  return static_cast<unsigned>(__builtin_ctz(lanes));
}

// "file:line:column". Valid until the next but three.
const char* place(const Site& site) {
  static __thread char words[4][256];
  static __thread unsigned next = 0;
  char(&into)[256] = words[next++ % 4];
  const char* name = std::strrchr(site.file, '/');
  std::snprintf(into, sizeof into, "%s:%u:%u", name == nullptr ? site.file : name + 1, site.line,
                site.column);
  return into;
}

}  // namespace

uint64_t call_warp(const WarpCall& call) {
  return runner->call_warp(call);
}
BarrierVotes call_barrier(bool predicate, Site site) {
  return runner->call_barrier(predicate, site);
}
void* shared_variable(const void* key, size_t bytes, size_t alignment) {
  return runner->shared_variable(key, bytes, alignment);
}
void* dynamic_shared(size_t alignment, Site site) {
  return runner->dynamic_shared(alignment, site);
}
void at_atomic() {
  if (runner != nullptr) runner->at_atomic();
}
int64_t warp_steps_of_block() {
  return runner->warp_steps();
}
void fail_kernel(const char* why, Site site) {
  runner->fail(site, "%s", why);
}

BlockRunner::~BlockRunner() {
  free_block();
}

void BlockRunner::begin(const Kernel& kernel) {
  const Unseen unseen;
  kernel_ = kernel;
  failure_ = {};
  usage_ = {};
  steps_left_ = kernel.turns.most_steps;
  steps_before_ = 0;
  host_ = context_of_this_thread();
  count_ = static_cast<unsigned>(kernel.grid.threads.count());
  random_ = kernel.turns.seed * 0x9e3779b97f4a7c15u + 1;
  begun_ = static_cast<char*>(std::malloc(1));
  ended_ = static_cast<char*>(std::malloc(1));
  release(begun_);
}

void BlockRunner::end() {
  acquire(ended_);
  const Unseen unseen;
  free_block();
  std::free(begun_);
  std::free(ended_);
  begun_ = ended_ = nullptr;
}

bool BlockRunner::run_block(Index block, int64_t number) {
  {
    const Unseen unseen;
    free_block();
    steps_before_ = usage_.warp_steps;
    place_threads(block, number);
    barrier_meetings_ = new Meetings;
    if (kernel_.grid.dynamic_shared > 0)
      dynamic_ = allocate_shared(kernel_.grid.dynamic_shared, 128);
  }
  runner = this;
  const bool counts_lanes = kernel_.turns.count_lanes;
  steps_until_told = counts_lanes ? 0 : steps_left_;
  switch_context(host_, fibers_[fiber_of_[current_]].context());
  if (!counts_lanes) steps_left_ = steps_until_told;
  steps_until_told = kUnlimited;
  runner = nullptr;
  running = nullptr;
  for (unsigned warp = 0; warp < count_; warp += kWarp) count_lanes(warp);
  if (shared_bytes_ > usage_.shared_bytes) usage_.shared_bytes = shared_bytes_;
  return !failure_.is_one();
}

// Fibers take other threads in each block, for the same reason that there are sets of them.
void BlockRunner::place_threads(Index block, int64_t number) {
  const GridExtent threads = kernel_.grid.threads;
  first_ready_ = ready_count_ = 0;
  for (unsigned i = 0; i < count_; ++i) {
    Thread& thread = threads_[i];
    thread = {};
    thread.state.thread = {i % threads.x, i / threads.x % threads.y, i / threads.x / threads.y};
    thread.state.block = block;
    thread.state.threads = threads;
    thread.state.blocks = kernel_.grid.blocks;
    const auto turn = static_cast<uint64_t>(number);
    const auto fiber =
        static_cast<unsigned>(turn % kFiberSets * kMostThreads + (i + turn * 7) % count_);
    fiber_of_[i] = fiber;
    if (!started_[fiber]) fibers_[fiber].start(&enter);
    started_[fiber] = true;
  }
  for (unsigned warp = 0; warp < count_; warp += kWarp) {
    Warp& of = warps_[warp / kWarp];
    of.alive = count_ - warp < kWarp ? (1u << (count_ - warp)) - 1 : ~0u;
    of.waiting = 0;
    for (uint32_t& lanes : of.together) lanes = 0;
  }
  const bool reverse = kernel_.turns.order == Order::reverse;
  for (unsigned i = 0; i < count_; ++i) make_ready(reverse ? count_ - 1 - i : i);
  alive_ = count_;
  at_barrier_ = 0;
  votes_ = 0;
  current_ = static_cast<unsigned>(take_ready());
}

void BlockRunner::free_block() {
  while (variables_ != nullptr) {
    Variable* next = variables_->next;
    std::free(variables_->data);
    delete variables_;
    variables_ = next;
  }
  while (mask_meetings_ != nullptr) {
    MaskMeetings* next = mask_meetings_->next;
    delete mask_meetings_;
    mask_meetings_ = next;
  }
  delete barrier_meetings_;
  barrier_meetings_ = nullptr;
  std::free(dynamic_);
  dynamic_ = nullptr;
  shared_bytes_ = 0;
}

void BlockRunner::run_threads() {
  while (true) {
    running = &self().state;
    acquire(begun_);
    kernel_.body(kernel_.arguments);
    release(ended_);
    end_thread();
  }
}

void BlockRunner::end_thread() {
  const unsigned warp = warp_of(current_), lane = current_ - warp;
  self().wait = Wait::ended;
  own_warp().alive &= ~(1u << lane);
  --alive_;
  for (uint32_t left = own_warp().waiting; left != 0; left &= left - 1) {
    const WarpCall& waiting = threads_[warp + lowest(left)].call;
    if ((waiting.mask >> lane & 1) != 0)
      fail(waiting.site, "waits for lane %u of its warp, which has ended", lane);
  }
  if (alive_ > 0 && at_barrier_ == alive_) finish_barrier();
  let_others_run();
}

unsigned BlockRunner::random_below(unsigned n) {  // xorshift*
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return static_cast<unsigned>((random_ * 0x2545f4914f6cdd1du >> 32) % n);
}

void BlockRunner::make_ready(unsigned thread) {
  threads_[thread].wait = Wait::none;
  ready_[(first_ready_ + ready_count_) % kMostThreads] = thread;
  ++ready_count_;
}

// The next thread's number; -1: none is ready.
int BlockRunner::take_ready() {
  if (ready_count_ == 0) return -1;
  unsigned& next = ready_[first_ready_];
  if (kernel_.turns.order == Order::random) {
    unsigned& chosen = ready_[(first_ready_ + random_below(ready_count_)) % kMostThreads];
    const unsigned kept = next;
    next = chosen;
    chosen = kept;
  }
  const unsigned thread = next;
  first_ready_ = (first_ready_ + 1) % kMostThreads;
  --ready_count_;
  return static_cast<int>(thread);
}

// Returns when this thread has its turn again. To the host once no thread is left.
void BlockRunner::let_others_run() {
  Context& from = fibers_[fiber_of_[current_]].context();
  const int next = take_ready();
  if (next < 0) {
    if (alive_ > 0 && !failure_.is_one()) stall();
    switch_context(from, host_);
  } else {
    if (++usage_.turns > kernel_.turns.most)
      fail({}, "the kernel takes more than %lld turns: it does not come to an end",
           static_cast<long long>(kernel_.turns.most));
    const unsigned self = current_;
    current_ = static_cast<unsigned>(next);
    if (current_ != self) switch_context(from, fibers_[fiber_of_[current_]].context());
  }
  running = &self().state;
}

void BlockRunner::fail(Site site, const char* format, ...) {
  va_list values;
  va_start(values, format);
  report(current_, site, format, values);
  va_end(values);
  give_up();
}

void BlockRunner::report(unsigned thread, Site site, const char* format, va_list values) {
  if (failure_.is_one()) return;
  const Index block = threads_[thread].state.block, of = threads_[thread].state.thread;
  int length = std::snprintf(
      failure_.words, sizeof failure_.words,
      "%s%skernel %s, block (%u, %u, %u), thread (%u, %u, %u): ", site.line == 0 ? "" : place(site),
      site.line == 0 ? "" : ": ", kernel_.name, block.x, block.y, block.z, of.x, of.y, of.z);
  std::vsnprintf(failure_.words + length, sizeof failure_.words - length, format, values);
}

// To the host, for good: stacks of all threads are forgotten as they are.
void BlockRunner::give_up() {
  for (unsigned i = 0; i < count_; ++i) {
    started_[fiber_of_[i]] = false;
    release_of(fibers_[fiber_of_[i]].context(), ended_);
  }
  switch_context(fibers_[fiber_of_[current_]].context(), host_, /*ends=*/true);
  std::abort();
}

void* BlockRunner::allocate_shared(size_t bytes, size_t alignment) {
  auto* data = static_cast<unsigned char*>(allocate(bytes, alignment));
  for (size_t i = 0; i < bytes; ++i) data[i] = 0xff;
  shared_bytes_ = (shared_bytes_ + alignment - 1) / alignment * alignment + bytes;
  return data;
}

void* BlockRunner::shared_variable(const void* key, size_t bytes, size_t alignment) {
  for (Variable* variable = variables_; variable != nullptr; variable = variable->next)
    if (variable->key == key) return variable->data;
  const Unseen unseen;
  variables_ = new Variable{key, allocate_shared(bytes, alignment), variables_};
  return variables_->data;
}

void* BlockRunner::dynamic_shared(size_t alignment, Site site) {
  if (dynamic_ == nullptr) fail(site, "was launched without dynamic shared memory");
  if (alignment > 128) fail(site, "dynamic shared memory is aligned to 128 bytes, not more");
  return dynamic_;
}

void BlockRunner::at_atomic() {
  if (kernel_.turns.order != Order::random || random_below(8) != 0) return;
  make_ready(current_);
  let_others_run();
}

// Where lanes are counted: at each basic block of code.
void BlockRunner::count_step(const void* place) {
  steps_until_told = 0;
  if (!kernel_.turns.count_lanes || --steps_left_ < 0)
    fail({}, "the kernel takes more than %lld steps: it does not come to an end",
         static_cast<long long>(kernel_.turns.most_steps));
  if (!own_warp().counts.add(place, current_ % kWarp)) {
    count_lanes(warp_of(current_));
    own_warp().counts.add(place, current_ % kWarp);
  }
}

// The lanes meet, or have ended.
void BlockRunner::count_lanes(unsigned warp) {
  usage_.warp_steps += warps_[warp / kWarp].counts.take();
}

// ---- barriers

BarrierVotes BlockRunner::call_barrier(bool predicate, Site site) {
  for (unsigned i = 0; i < count_ && at_barrier_ > 0; ++i) {
    const Thread& other = threads_[i];
    if (other.wait != Wait::barrier) continue;
    if (!same(other.barrier, site))
      fail(site, "is at this barrier while thread %u is at another, %s", i, place(other.barrier));
    break;  // all that wait are at the same
  }
  void* place = barrier_meetings_->arrive();
  self().wait = Wait::barrier;
  self().barrier = site;
  ++at_barrier_;
  votes_ += predicate ? 1 : 0;
  if (at_barrier_ == alive_) finish_barrier();
  let_others_run();
  Meetings::leave(place);
  return {last_votes_, last_threads_};
}

void BlockRunner::finish_barrier() {
  last_votes_ = votes_;
  last_threads_ = static_cast<int>(at_barrier_);
  votes_ = 0;
  at_barrier_ = 0;
  barrier_meetings_->hold();
  for (unsigned warp = 0; warp < count_; warp += kWarp) count_lanes(warp);
  const bool reverse = kernel_.turns.order == Order::reverse;
  for (unsigned i = 0; i < count_; ++i) {
    const unsigned thread = reverse ? count_ - 1 - i : i;
    if (threads_[thread].wait == Wait::barrier) make_ready(thread);
  }
}

// ---- warps

uint64_t BlockRunner::call_warp(const WarpCall& call) {
  check_mask(call);
  join(call);
  void* place = nullptr;
  Meetings* meetings = nullptr;
  if (call.op == WarpOp::sync) {
    meetings = &meetings_of(call.mask);
    place = meetings->arrive();
  }
  if (all_lanes_wait(call)) {
    if (meetings != nullptr) meetings->hold();
    finish_warp_call(call);
  }
  let_others_run();
  if (place != nullptr) Meetings::leave(place);
  return self().result;
}

void BlockRunner::check_mask(const WarpCall& call) {
  const unsigned warp = warp_of(current_), own = current_ - warp;
  if ((call.mask >> own & 1) == 0)
    fail(call.site, "its mask 0x%08x does not name lane %u itself", call.mask, own);
  if (call.width < 1 || call.width > static_cast<int>(kWarp) ||
      (call.width & (call.width - 1)) != 0)
    fail(call.site, "a width of %d is no power of two up to 32", call.width);
  const uint32_t missing = call.mask & ~own_warp().alive;
  if (missing == 0) return;
  const unsigned lane = lowest(missing);
  fail(call.site,
       warp + lane >= count_ ? "its mask 0x%08x names lane %u, which the block does not have"
                             : "its mask 0x%08x names lane %u, which has ended",
       call.mask, lane);
}

// Who waits like one of those that are known to be alike is like all of them, and need not look at
// each.
void BlockRunner::join(const WarpCall& call) {
  Warp& of = own_warp();
  uint32_t& together = of.together[lowest(call.mask)];
  const unsigned warp = warp_of(current_);
  const bool joins = together == 0 || alike(threads_[warp + lowest(together)].call, call);
  if ((of.waiting & call.mask & ~(joins ? together : 0)) != 0) check_lanes(call);
  const uint32_t own = 1u << (current_ - warp);
  of.waiting |= own;
  if (joins) together |= own;
  self().wait = Wait::warp;
  self().call = call;
}

// That nobody of the mask waits where it can never come here from.
void BlockRunner::check_lanes(const WarpCall& call) {
  const unsigned warp = warp_of(current_), own = current_ - warp;
  for (uint32_t left = own_warp().waiting & call.mask; left != 0; left &= left - 1) {
    const unsigned lane = lowest(left);
    const WarpCall& other = threads_[warp + lane].call;
    if ((other.mask >> own & 1) != 0 && !alike(other, call))
      fail(call.site,
           "waits with mask 0x%08x for lane %u, which waits for it at %s with mask 0x%08x",
           call.mask, lane, place(other.site), other.mask);
  }
}

bool BlockRunner::all_lanes_wait(const WarpCall& call) {
  const Warp& of = own_warp();
  if ((of.waiting & call.mask) != call.mask) return false;
  const uint32_t together = of.together[lowest(call.mask)];
  if (together == call.mask) return true;
  // One that waits with another mask has not come here yet.
  for (uint32_t left = call.mask; left != 0; left &= left - 1)
    if (threads_[warp_of(current_) + lowest(left)].call.mask != call.mask) return false;
  return true;
}

void BlockRunner::finish_warp_call(const WarpCall& call) {
  const unsigned warp = warp_of(current_);
  const WarpCall* calls[kWarp];
  uint64_t results[kWarp];  // set where there are calls
  for (unsigned lane = 0; lane < kWarp; ++lane)
    calls[lane] = (call.mask >> lane & 1) != 0 ? &threads_[warp + lane].call : nullptr;
  const ForbiddenRead forbidden = warp_results(calls, results);
  if (forbidden.lane >= 0)
    fail(call.site, "lane %d reads lane %d, which its mask 0x%08x does not name", forbidden.lane,
         forbidden.of, call.mask);
  if (call.mask == 0xffffffffu) count_lanes(warp);
  own_warp().waiting &= ~call.mask;
  own_warp().together[lowest(call.mask)] &= ~call.mask;
  const bool reverse = kernel_.turns.order == Order::reverse;
  for (unsigned i = 0; i < kWarp; ++i) {
    const unsigned lane = reverse ? kWarp - 1 - i : i;
    if (calls[lane] == nullptr) continue;
    threads_[warp + lane].result = results[lane];
    make_ready(warp + lane);
  }
}

Meetings& BlockRunner::meetings_of(uint32_t mask) {
  const unsigned warp = warp_of(current_);
  for (MaskMeetings* of = mask_meetings_; of != nullptr; of = of->next)
    if (of->warp == warp && of->mask == mask) return of->meetings;
  const Unseen unseen;
  auto* made = new MaskMeetings;
  made->warp = warp;
  made->mask = mask;
  made->next = mask_meetings_;
  mask_meetings_ = made;
  return made->meetings;
}

// ---- what cannot go on

const Site& BlockRunner::site_of(unsigned thread) const {
  const Thread& of = threads_[thread];
  return of.wait == Wait::barrier ? of.barrier : of.call.site;
}

// Threads are left, and each waits for another.
void BlockRunner::stall() {
  unsigned waiting = 0;
  while (threads_[waiting].wait == Wait::ended) ++waiting;
  unsigned other = waiting + 1;
  while (other < count_ &&
         (threads_[other].wait == Wait::ended || same(site_of(other), site_of(waiting))))
    ++other;
  current_ = waiting;
  if (other == count_) fail(site_of(waiting), "waits for threads that never come");
  fail(site_of(waiting), "waits here, and thread %u at %s: neither can go on", other,
       place(site_of(other)));
}

void count_step(const void* place) {
  runner->count_step(place);
}

}  // namespace recmill::emulation

// Compilers call it with -fsanitize-coverage=trace-pc.
extern "C" __attribute__((used)) void __sanitizer_cov_trace_pc() {
  if (--recmill::emulation::steps_until_told < 0)
    recmill::emulation::count_step(__builtin_return_address(0));
}
