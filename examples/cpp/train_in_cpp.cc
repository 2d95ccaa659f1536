// SPDX-License-Identifier: Apache-2.0
// Trains twice from one configuration, at two learning rates, and says which is the better one:
// what a shell script around `recmill train --set ...` would do, in one process.
// usage: train_in_cpp CONFIG.toml
#include <cstdio>
#include <string>

#include "base/files.h"
#include "comm/threads.h"
#include "config/run_config.h"
#include "train/job.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: train_in_cpp CONFIG.toml\n");
    return 2;
  }
  recmill::ThreadsWorld world;
  double best_auc = 0, best_rate = 0;
  for (const std::string rate : {"0.01", "0.05"}) {
    auto config = recmill::config::load_run_config(argv[1], {"optimizer.learning_rate=" + rate});
    if (!config.ok()) {
      std::fprintf(stderr, "%s\n", config.status().message().c_str());
      return 2;
    }
    config->options.name = "rate_" + rate;
    recmill::train::TrainingRequest request;
    request.existing = recmill::train::ExistingRun::overwrite;
    const recmill::train::JobIdentity identity{"unknown",
                                               recmill::config::to_toml(config->options)};
    const auto summary = recmill::train::run_training(
        config->options, request, {recmill::posix_files(), world, "unknown", identity});
    if (!summary.ok()) {
      std::fprintf(stderr, "%s\n", config->locate(summary.status()).message().c_str());
      return 1;
    }
    const double auc = summary->at("auc");
    std::printf("learning rate %s: AUC %.5f\n", rate.c_str(), auc);
    if (auc > best_auc) best_auc = auc, best_rate = std::stod(rate);
  }
  std::printf("best: %g\n", best_rate);
  return 0;
}
