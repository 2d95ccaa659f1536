// SPDX-License-Identifier: Apache-2.0
#include "train/export_plain_run.h"

#include <vector>

#include "batch/gpu_sparse_batch.h"
#include "checkpoint/export_folder.h"
#include "comm/threads.h"
#include "run/rank.h"
#include "train/plain_export.h"

namespace recmill::train {
namespace {

// What PlainExport::describe() does not refuse by itself.
Status check_exportable(const ResolvedRun& run) {
  if (run.ranks > 1) {
    return Status::BadRequest("train.ranks: a plain export is written by one rank");
  }
  if (run.options.train.negative_keep < 1.0) {
    return Status::BadRequest("train.negative_keep: the plain PyTorch script calibrates nothing");
  }
  for (const preprocess::DictionarySpec& dictionary : run.graph.dictionaries) {
    if (dictionary.unseen != "mean") continue;
    return Status::BadRequest("unseen: the plain PyTorch script has no \"mean\" (table '" +
                              dictionary.name + "'): give embedding.unseen = \"row\"");
  }
  return {};
}

Status export_rows(const ModelSpec& spec, store::EmbeddingStore& store, PlainExport& out) {
  std::vector<float> rows;  // of one table: blocks come in ascending order of (table, row)
  return store.read_rows([&](const store::RowBlock& block) -> Status {
    const TableSpec& table = spec.tables[block.table];
    rows.insert(rows.end(), block.weights.begin(), block.weights.end());
    if (block.first + block.count < table.rows) return {};
    RECMILL_RETURN_IF_ERROR(out.table(block.table, table.dim, rows));
    rows.clear();
    return {};
  });
}

std::vector<double> learning_rates(const ResolvedRun& run, double scale) {
  std::vector<double> rates{scale * run.options.optimizer.learning_rate};
  for (const TableSpec& table : run.spec.tables) {
    rates.push_back(table.frozen ? 0.0 : scale * table.optimizer.learning_rate);
  }
  return rates;
}

Status export_batches(const ResolvedRun& run, Rank& rank, PlainExport& out) {
  const BatchSchedule schedule = run.schedule(0);
  const auto stage = make_data_stage(run, rank, schedule);
  while (true) {
    RECMILL_ASSIGN_OR_RETURN(auto batch, stage->next());
    if (batch == nullptr) return {};
    if (!batch->dense.sample_weights.empty()) {
      return Status::BadRequest("data: the plain PyTorch script knows no weights of samples");
    }
    RECMILL_RETURN_IF_ERROR(bring_to_host(batch->sparse));
    if (batch->purpose == store::Purpose::train) {
      const double scale = rank.learning_rate.scale(batch->before.iteration);
      out.train(batch->dense, batch->sparse, learning_rates(run, scale));
    } else if (training_is_over(schedule, batch->before)) {
      out.evaluate(batch->dense, batch->sparse);
    }
    stage->recycle(std::move(batch));
  }
}

}  // namespace

Status export_plain_run(const ResolvedRun& run, Files& files, const std::string& folder) {
  RECMILL_RETURN_IF_ERROR(check_exportable(run));
  RECMILL_ASSIGN_OR_RETURN(
      const auto beside,
      checkpoint::ExportFolder::create(files, folder, [](const std::string& name) {
        return name == "model.json" || name == "parameters" || name == "tables" ||
               name == "train" || name == "eval";
      }));
  PlainExport out(files, beside->path());
  RECMILL_RETURN_IF_ERROR(out.describe(run.options.model, run.spec, run.options.optimizer));
  const auto pool = make_pool(run.threads);
  return run_ranks(1, [&](Communicator& communicator) -> Status {
    RECMILL_ASSIGN_OR_RETURN(Rank rank, make_rank(run, Way::engine, communicator, *pool, files));
    if (rank.eval_rows == nullptr) {
      return Status::BadRequest("data.eval: a plain export needs evaluation rows");
    }
    RECMILL_RETURN_IF_ERROR(out.parameters(rank.model->parameters(), rank.trainer->parameters()));
    RECMILL_RETURN_IF_ERROR(export_rows(run.spec, *rank.store, out));
    RECMILL_RETURN_IF_ERROR(export_batches(run, rank, out));
    RECMILL_RETURN_IF_ERROR(out.finish());
    return beside->publish();
  });
}

}  // namespace recmill::train
