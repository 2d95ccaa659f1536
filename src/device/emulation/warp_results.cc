// SPDX-License-Identifier: Apache-2.0
// Part of the runtime: never compiled with ThreadSanitizer.
#include "device/emulation/warp_results.h"

namespace recmill::emulation {
namespace {

// The lane that `lane` reads; a shuffle beyond its group reads itself.
int source_of(const WarpCall& call, int lane) {
  const int group = lane & -call.width;  // a power of two
  switch (call.op) {
    case WarpOp::shuffle:
      return group + (call.operand & (call.width - 1));
    case WarpOp::shuffle_up:
      return lane - call.operand < group ? lane : lane - call.operand;
    case WarpOp::shuffle_down:
      return lane + call.operand >= group + call.width ? lane : lane + call.operand;
    default: {  // a lane of a later group is not to be had, one of an earlier is
      const int of = lane ^ call.operand;
      return of >= group + call.width ? lane : of;
    }
  }
}

bool is_shuffle(WarpOp op) {
  return op == WarpOp::shuffle || op == WarpOp::shuffle_up || op == WarpOp::shuffle_down ||
         op == WarpOp::shuffle_xor;
}

bool named(uint32_t mask, unsigned lane) {
  return (mask >> lane & 1) != 0;
}

uint64_t reduced(const WarpCall* const (&calls)[kWarp], WarpOp op, uint32_t mask) {
  uint64_t result = 0;
  bool first = true;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (!named(mask, lane)) continue;
    const uint64_t value = calls[lane]->value;
    const bool takes = first || (op == WarpOp::least ? value < result : value > result);
    if (op == WarpOp::ballot) {
      result |= uint64_t{value != 0} << lane;
    } else if (op == WarpOp::add) {
      result += value;
    } else if (takes) {
      result = value;
    }
    first = false;
  }
  return result;
}

// Each lane gets those with its value.
void match(const WarpCall* const (&calls)[kWarp], uint32_t mask, uint64_t (&results)[kWarp]) {
  while (mask != 0) {
    const uint64_t value = calls[__builtin_ctz(mask)]->value;
    uint32_t same = 0;
    for (uint32_t left = mask; left != 0; left &= left - 1)
      if (calls[__builtin_ctz(left)]->value == value) same |= left & -left;
    for (uint32_t left = same; left != 0; left &= left - 1) results[__builtin_ctz(left)] = same;
    mask &= ~same;
  }
}

}  // namespace

ForbiddenRead warp_results(const WarpCall* const (&calls)[kWarp], uint64_t (&results)[kWarp]) {
  const WarpCall* any = nullptr;
  for (const WarpCall* call : calls)
    if (call != nullptr) any = call;
  const uint32_t mask = any->mask;
  if (any->op == WarpOp::match_any) {
    match(calls, mask, results);
    return {};
  }
  const uint64_t all = is_shuffle(any->op) ? 0 : reduced(calls, any->op, mask);
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (!named(mask, lane)) continue;
    if (is_shuffle(any->op)) {
      const int of = source_of(*calls[lane], static_cast<int>(lane));
      if (!named(mask, static_cast<unsigned>(of))) return {static_cast<int>(lane), of};
      results[lane] = calls[of]->value;
    } else {
      results[lane] = all;
    }
  }
  return {};
}

}  // namespace recmill::emulation
