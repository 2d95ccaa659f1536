// SPDX-License-Identifier: Apache-2.0
// What gives trained rows and layers their meaning, beside their names and shapes: a checkpoint
// says it, and is not taken by a configuration that says otherwise (docs/formats/checkpoint.md).
#pragma once

#include <string>

#include "base/json/json_fwd.h"
#include "base/status.h"
#include "run/resolved_run.h"

namespace recmill::train {

/// What the feature graph does not tell: how cells are read, pooling, the model's options. The
/// property `meaning` of a checkpoint.
Json meaning_of(const ResolvedRun& run);

/// The first difference of the run from `then`, by the key of the configuration: "model.kind: is
/// "dlrm", and PATH was written with "mlp"". What `then` lacks is passed over.
Status compare_meaning(const ResolvedRun& run, const Json& then, const std::string& path);

/// Whether `then` has all that meaning_of(run) has.
bool tells_all(const ResolvedRun& run, const Json& then);

/// The same of feature graphs, as JSON: columns, ops with their parameters, tables' rows.
Status compare_graph(const ResolvedRun& run, const Json& then, const std::string& path);

}  // namespace recmill::train
