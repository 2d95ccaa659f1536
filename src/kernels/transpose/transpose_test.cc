// SPDX-License-Identifier: Apache-2.0
#include "kernels/transpose/transpose.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <numeric>
#include <vector>

namespace recmill::kernels::transpose {
namespace {

constexpr int64_t kGuard = 16;  // floats behind the result that nobody may touch

TEST(Transpose, moves_each_element_and_touches_nothing_else_on_every_target) {
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    for (int64_t rows : {0, 1, 3, 4, 15, 16, 17, 64, 67}) {
      for (int64_t columns : {0, 1, 3, 4, 5, 16, 31, 128}) {
        std::vector<float> from(static_cast<size_t>(rows * columns));
        std::iota(from.begin(), from.end(), 1.0f);
        std::vector<float> to(from.size() + kGuard, -1.0f), expected = to;
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < columns; ++c) {
            expected[static_cast<size_t>(c * rows + r)] =
                from[static_cast<size_t>(r * columns + c)];
          }
        }
        transpose_matrix(rows, columns, from.data(), to.data());
        EXPECT_EQ(to, expected) << rows << " x " << columns;
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace recmill::kernels::transpose
