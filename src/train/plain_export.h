// SPDX-License-Identifier: Apache-2.0
// Writes what a plain PyTorch DLRM needs to repeat a run: initial weights, batches, learning rates.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "batch/sparse_batch.h"
#include "model/model.h"
#include "model/model_options.h"
#include "schema/table_spec.h"
#include "step/optimizer/optimizer_options.h"

namespace recmill::train {

/// The folder that bench/rivals/pytorch_dlrm.py reads; its layout is there. Batches are held in
/// memory until finish(), so this is for data of some million samples.
class PlainExport {
 public:
  PlainExport(Files& files, std::string folder) : files_(files), folder_(std::move(folder)) {}

  /// model.json. Only dlrm has a plain script, with tables of one dimension.
  Status describe(const model::ModelOptions& model, const ModelSpec& spec,
                  const DenseOptimizerOptions& optimizer);
  /// Initial values of the dense parameters.
  Status parameters(std::span<const model::ParameterSpec> specs, std::span<const float> flat);
  /// Initial rows of one table, [rows][dim].
  Status table(int table, int64_t dim, std::span<const float> rows);

  /// The next training batch, and its learning rates: the dense parameters', then each table's.
  void train(const DenseBatch& dense, const SparseBatch& sparse, std::span<const double> rates);
  /// The next evaluation batch.
  void evaluate(const DenseBatch& dense, const SparseBatch& sparse) { eval_.add(dense, sparse); }

  /// Writes train/ and eval/.
  Status finish();

 private:
  /// Batches one behind the other.
  struct Samples {
    int64_t columns = 0;
    std::vector<float> dense, labels;
    std::vector<int64_t> bounds{0};
    std::vector<SparseFeature> features;
    void add(const DenseBatch& dense_batch, const SparseBatch& sparse);
  };
  Status write(const std::string& part, const Samples& samples);
  template <typename T>
  Status write_array(const std::string& name, const std::vector<int64_t>& shape,
                     std::span<const T> values);

  Files& files_;
  const std::string folder_;
  Samples train_, eval_;
  std::vector<double> rates_;
};

}  // namespace recmill::train
