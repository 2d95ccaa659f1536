// SPDX-License-Identifier: Apache-2.0
// A run of features by the line, with bags of several ids, for tests of what looks rows up.
#pragma once

#include "run/options/run_options.h"

namespace recmill::train {

/// `rows` generated rows and none held out; two features of 100 rows each, and bags, some of them
/// empty, of a table of 50; a Wide&Deep, which adds tables of its own.
inline RunOptions bags_run(int64_t rows) {
  RunOptions options;
  options.data.format = DataFormat::synthetic;
  options.data.synthetic.shape = reader::SyntheticShape::columns;
  options.data.synthetic.rows = rows;
  options.data.synthetic.eval_rows = 0;
  options.data.synthetic.planted.crosses = 0;
  options.workload.lines = {{.count = 2, .rows = 100, .dims = {4}},
                            {.kind = LineKind::normal,
                             .mean = 6,
                             .deviation = 3,
                             .longest = 12,
                             .coverage = 0.8,
                             .rows = 50,
                             .dims = {8}}};
  options.model.kind = model::ModelKind::wide_and_deep;
  options.model.deep = {4};
  options.model.deep_input = model::DeepInput::rows;
  options.train.batch_size = 64;
  return options;
}

}  // namespace recmill::train
