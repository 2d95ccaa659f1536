// SPDX-License-Identifier: Apache-2.0
// A library of this build that has found another LibTorch.
#include "model/torch_library.h"

namespace recmill::model {
namespace {

constexpr TorchLibrary kLibrary{[] { return std::string("0.4.1, SSE2"); }, nullptr, nullptr,
                                nullptr, nullptr};

}  // namespace
}  // namespace recmill::model

extern "C" const recmill::model::TorchLibrary* recmill_torch_library(
    const char*, const recmill::model::TorchHost*) {
  return &recmill::model::kLibrary;
}
