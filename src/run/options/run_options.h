// SPDX-License-Identifier: Apache-2.0
// A whole configuration file.
#pragma once

#include <string>
#include <vector>

#include "model/model_options.h"
#include "preprocess/dag/feature_options.h"
#include "reader/data_options.h"
#include "run/options/gpu_options.h"
#include "run/options/hotset_options.h"
#include "run/options/kernel_options.h"
#include "run/options/lookahead_options.h"
#include "run/options/placement_options.h"
#include "run/options/tune_options.h"
#include "run/options/workload_options.h"
#include "schema/device_kind.h"
#include "schema/options.h"
#include "step/optimizer/optimizer_options.h"
#include "step/train_options.h"

namespace recmill::train {

struct RunOptions {
  std::string name;
  std::string base;
  DeviceKind device = DeviceKind::cpu;
  DataOptions data;
  WorkloadOptions workload;
  preprocess::PreprocessOptions preprocess;
  preprocess::EmbeddingOptions embedding;
  std::vector<preprocess::TableOptions> tables;
  std::vector<preprocess::FeatureOptions> features;
  model::ModelOptions model;
  DenseOptimizerOptions optimizer;
  TrainOptions train;
  PlacementOptions placement;
  LookaheadOptions lookahead;
  HotsetOptions hotset;
  KernelOptions kernels;
  TuneOptions tune;
  GpuRunOptions gpu;
};
template <typename Visitor>
void describe(Visitor& v, RunOptions& o) {
  v("name", o.name, "name of the run and of its folder; empty: that of the configuration file");
  v("base", o.base,
    "folder that paths are relative to, as the copy in a run's folder has it; empty, or no longer "
    "there: the current folder");
  v("device", o.device,
    "where rows are stored and their kernels run: cpu, cuda, or emulated (a GPU that the CPU "
    "plays: "
    "slow, to try and to test)");
  v("data", o.data, "the rows");
  v("workload", o.workload, "synthetic features by the line, of which each makes many");
  v("preprocess", o.preprocess, "operations on dense columns");
  v("embedding", o.embedding, "defaults of all tables and features");
  v("tables", o.tables, "tables that differ from the defaults");
  v("features", o.features, "features that differ from the defaults");
  v("model", o.model, "the dense part");
  v("optimizer", o.optimizer, "the dense part's optimizer");
  v("train", o.train, "training and evaluation");
  v("placement", o.placement,
    "where rows are stored, and how ranks fetch them, with embedding.store = \"placed\"");
  v("lookahead", o.lookahead,
    "how far a cache of rows looks ahead, with embedding.store = \"cached\"");
  v("hotset", o.hotset, "which rows are hot: looked up so often that they are stored near");
  v("kernels", o.kernels, "schedules of embedding kernels");
  v("tune", o.tune, "what kernels are tuned and timed on");
  v("gpu", o.gpu, "how kernels are launched on device = \"cuda\" and \"emulated\"");
}

}  // namespace recmill::train
