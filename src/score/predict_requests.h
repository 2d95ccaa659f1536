// SPDX-License-Identifier: Apache-2.0
// Rows answered as requests, and how long each took.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/json/json.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "run/rank.h"
#include "score/request_load.h"
#include "step/rank_batch.h"

namespace recmill::train {

struct RequestResults {
  std::vector<std::vector<float>> logits;  // [requests][samples of this rank]
  /// {"loop", "concurrency", "requests", "warmup", "seconds", "requests_per_second",
  /// "samples_per_second", "milliseconds", "stages", "received_bytes"}: of the requests that were
  /// counted, at the rank that took longest over each; bytes that lookups of a request brought from
  /// rank to rank, rows and what was asked for, over all ranks. "seconds" are this rank's, from
  /// when the first one was due.
  Json report;
};

/// Whether so many requests may be in flight at once, with so many ranks: an error names
/// --concurrency, and says why not.
Status check_concurrency(const RequestOptions& options, int ranks, DeviceKind device);

/// Answers requests, preprocessed and not yet prepared, which begin in order: prepares a request,
/// looks its rows up, and computes its logits. Nothing but options.concurrency requests happens
/// meanwhile. Logits are the same bits at any concurrency. A bad request where none would be
/// counted. Collective; as many requests on every rank.
Result<RequestResults> predict_requests(std::span<const std::unique_ptr<RankBatch>> requests,
                                        const RequestOptions& options, Rank& rank,
                                        Communicator& communicator);

}  // namespace recmill::train
