// SPDX-License-Identifier: Apache-2.0
// Requests answered one after the other, and how long each took.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/json_lines.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "run/rank.h"
#include "step/rank_batch.h"

namespace recmill::train {

struct RequestOptions {
  /// Requests that are answered first and not counted; below 0: a tenth of them.
  int64_t warmup = -1;
  /// Requests a second, evenly: request i is due i / rate seconds after the start, and what it
  /// waits because earlier ones are not answered yet is part of its time (open loop). 0: each is
  /// due when the one before is answered by all ranks (closed loop).
  double rate = 0.0;
};

struct RequestResults {
  std::vector<std::vector<float>> logits;  // [requests][samples of this rank]
  /// {"loop", "requests", "warmup", "seconds", "requests_per_second", "samples_per_second",
  /// "milliseconds", "stages", "received_bytes"}: of the requests that were counted, at the rank
  /// that took longest over each; bytes that lookups of a request brought from rank to rank, rows
  /// and what was asked for, over all ranks. "seconds" are this rank's, from when the first one was
  /// due.
  Json report;
};

/// Answers requests, preprocessed and not yet prepared, in order: prepares a request, looks its
/// rows up, and computes its logits. Nothing else happens meanwhile. A bad request where
/// none would be counted. Collective; as many requests on every rank.
Result<RequestResults> predict_requests(std::span<const std::unique_ptr<RankBatch>> requests,
                                        const RequestOptions& options, Rank& rank,
                                        Communicator& communicator);

}  // namespace recmill::train
