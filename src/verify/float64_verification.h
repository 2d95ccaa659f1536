// SPDX-License-Identifier: Apache-2.0
// How far a run in float32 ends from the same run in float64, beside how far the plain one does.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json/json_fwd.h"
#include "base/status.h"
#include "run/options/run_options.h"

namespace recmill::train {

/// Relative L2 distances |x - x64| / |x64| of one table's rows or one layer's parameter.
struct Float64Distance {
  std::string name;
  int64_t elements = 0;
  double configured = 0.0, plain = 0.0;

  /// configured over plain; where the plain run is nearer than one element of average size rounded
  /// once, 2^-24 / sqrt(elements), over that.
  double ratio() const;
};

struct Float64Comparison {
  int64_t iterations = 0;  // that were trained
  std::vector<Float64Distance> distances;
};

inline constexpr double kMostOverPlain = 4.0;

/// Trains at most `iterations`, and one epoch: in float64, the plain way, and as configured (its
/// ranks and threads). The plain way has the configuration's precisions of rows and layers, so that
/// the ratio measures how the run is carried out. Fails, naming the worst table or layer, where a
/// ratio is above kMostOverPlain; `say` hears of each one that is. Returns the distances.
Result<Json> verify_against_float64(const RunOptions& options, int64_t iterations, Files& files,
                                    const std::function<void(const std::string&)>& say);

/// The same for two sets of options that name the same tables and layers: `configured` is measured
/// by the float64 run of `options`.
Result<Float64Comparison> float64_distances(const RunOptions& options, const RunOptions& configured,
                                            Files& files);

}  // namespace recmill::train
