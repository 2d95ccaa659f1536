// SPDX-License-Identifier: Apache-2.0
// Runs a test once on each instruction set that this machine has, the portable one among them.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

namespace recmill::kernels {

template <class Body>
void on_every_instruction_set(const Body& body) {
  const int64_t supported = hwy::SupportedTargets();
  for (int64_t target : {int64_t{HWY_AVX3}, int64_t{HWY_AVX2}, int64_t{HWY_SCALAR}}) {
    if ((target & (supported | HWY_SCALAR)) == 0) continue;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace recmill::kernels
