// SPDX-License-Identifier: Apache-2.0
// Chains of ops on the threads of a pool, by Op::run.
#pragma once

#include <span>

#include "preprocess/run/stateless_ops.h"

namespace recmill::preprocess {

class PoolOps final : public StatelessOps {
 public:
  /// The pool outlives it. run() never fails.
  PoolOps(ThreadPool& pool, ChainSubset chains) : pool_(pool), chains_(std::move(chains)) {}
  Status run(PreprocessCall& call) override;

 private:
  ThreadPool& pool_;
  const ChainSubset chains_;
};

}  // namespace recmill::preprocess
