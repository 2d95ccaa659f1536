// SPDX-License-Identifier: Apache-2.0
#include "run/gpu/make_gpu_store.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "comm/gather_values.h"
#include "comm/gpu/staged_gpu_exchange.h"
#include "comm/gpu/window_gpu_exchange.h"
#include "comm/nccl/nccl_gpu_exchange.h"
#include "run/gpu/gpu_memory.h"
#include "run/gpu/gpu_run.h"
#include "run/gpu/gpu_sources.h"
#include "run/gpu/place_gpu_rows.h"
#include "run/lookahead/row_home.h"
#include "run/schedules.h"
#include "store/gpu/cached_gpu_store.h"
#include "store/gpu/gpu_store.h"
#include "store/gpu/table_wise_gpu_store.h"
#include "store/tables/table_rows.h"

namespace recmill::train {
namespace {

Status check_windows(const GpuRunOptions& options, const RankOnHost& place, int ranks) {
  if (options.exchange != GpuExchangeKind::windows || std::ssize(place.ranks) == ranks) return {};
  return Status::BadRequest("gpu.exchange: \"windows\" is between ranks of one host, which has " +
                            std::to_string(place.ranks.size()) + " of " + std::to_string(ranks));
}

template <class Way>
Result<std::unique_ptr<GpuExchange>> made(Gpu& gpu, Communicator& communicator) {
  RECMILL_ASSIGN_OR_RETURN(auto exchange, Way::make(gpu, communicator));
  return std::unique_ptr<GpuExchange>(std::move(exchange));
}

/// What brings rows from GPU to GPU. `one_host`: all ranks are of this one.
store::MakeGpuExchange exchange_of(GpuExchangeKind kind, bool one_host) {
  return [=](Gpu& gpu, Communicator& communicator) -> Result<std::unique_ptr<GpuExchange>> {
    bool windows = kind == GpuExchangeKind::windows;
    if (kind == GpuExchangeKind::automatic) {
      if (auto* const nccl = dynamic_cast<NcclCommunicator*>(&communicator); nccl != nullptr)
        return std::unique_ptr<GpuExchange>(std::make_unique<NcclGpuExchange>(gpu, *nccl));
      RECMILL_ASSIGN_OR_RETURN(const bool suits, WindowGpuExchange::suits(gpu, communicator));
      windows = suits && one_host;
    }
    if (windows) return made<WindowGpuExchange>(gpu, communicator);
    return made<StagedGpuExchange>(gpu, communicator);
  };
}

/// Bytes of the GPU's memory that are free before any of its ranks takes some. Collective, of all
/// ranks that have a GPU open.
Result<int64_t> free_before(std::span<const int> ranks, Gpu& gpu, Communicator& communicator) {
  RECMILL_RETURN_IF_ERROR(communicator.barrier());
  RECMILL_ASSIGN_OR_RETURN(const auto free, gather_values(gpu.driver().free_bytes(), communicator));
  int64_t least = free[communicator.rank()];
  for (const int rank : ranks) least = std::min(least, free[rank]);
  return least;
}

/// Where the rows of each table that the rank holds are stored, or what its cache has. Collective.
Result<GpuPlan> place_rows(const ResolvedRun& run, const RankOnHost& place,
                           const store::GpuStoreKernels& kernels, Gpu& gpu,
                           Communicator& communicator) {
  const int rank = communicator.rank();
  RECMILL_ASSIGN_OR_RETURN(const int gpus, gpus_of_machine(run.options.device));
  const auto ranks = ranks_of_same_gpu(place, gpus);
  RECMILL_ASSIGN_OR_RETURN(const int64_t free, free_before(ranks, gpu, communicator));
  const int64_t usable = usable_bytes(run.options.gpu, free);
  auto plans = plan_gpu(run, usable, ranks, kernels.pool);
  RECMILL_RETURN_IF_ERROR(check_gpu_memory(run, plans, usable));
  GpuPlan plan = std::move(*std::ranges::find(plans, rank, &GpuPlan::rank));
  if (run.options.gpu.rows != GpuRowsIn::device)
    log_info((run.ranks > 1 ? "rank " + std::to_string(rank) + ": " : "") + "gpu.rows = \"" +
             std::string(name_of(run.options.gpu.rows)) +
             "\": " + placed_text(run.spec, plan.held, plan.rows));
  return plan;
}

/// The store of one rank, or that of several.
Result<std::unique_ptr<store::EmbeddingStore>> of_ranks(const ResolvedRun& run, const RankGpu& of,
                                                        const store::GpuStoreKernels& kernels,
                                                        std::span<const store::RowsAt> rows,
                                                        Communicator& communicator,
                                                        ThreadPool& pool, Files& files,
                                                        HomeStart& start) {
  const auto seed = static_cast<uint64_t>(run.options.train.seed);
  if (run.options.embedding.store == StoreKind::cached) {
    RECMILL_ASSIGN_OR_RETURN(auto home, make_row_home(run, communicator, pool, files, start));
    RECMILL_ASSIGN_OR_RETURN(
        auto store, store::CachedGpuStore::create(run.spec, seed, home, of.gpu, kernels, pool));
    return std::unique_ptr<store::EmbeddingStore>(std::move(store));
  }
  if (communicator.ranks() == 1) {
    RECMILL_ASSIGN_OR_RETURN(auto store,
                             store::GpuStore::create(run.spec, seed, of.gpu, kernels, pool, rows));
    return std::unique_ptr<store::EmbeddingStore>(std::move(store));
  }
  const bool one_host = std::ssize(of.place.ranks) == communicator.ranks();
  RECMILL_ASSIGN_OR_RETURN(
      auto store, store::TableWiseGpuStore::create(run.spec, seed, of.gpu, kernels, communicator,
                                                   exchange_of(run.options.gpu.exchange, one_host),
                                                   pool, rows));
  return std::unique_ptr<store::EmbeddingStore>(std::move(store));
}

}  // namespace

Result<GpuRunStore> make_gpu_store(const ResolvedRun& run, const RankGpu& of,
                                   Communicator& communicator, ThreadPool& pool, Files& files) {
  RECMILL_RETURN_IF_ERROR(check_windows(run.options.gpu, of.place, communicator.ranks()));
  RECMILL_ASSIGN_OR_RETURN(const TunedSchedules chosen,
                           choose_schedules(run, {.gpu = of.gpu->properties()}, files));
  store::GpuStoreKernels kernels = gpu_store_kernels(run, chosen.schedules);
  kernels.compile = of.compile;
  RECMILL_ASSIGN_OR_RETURN(const GpuPlan plan,
                           place_rows(run, of.place, kernels, *of.gpu, communicator));
  HomeStart home;
  auto store = of_ranks(run, of, kernels, plan.rows, communicator, pool, files, home);
  if (!store.ok())
    return store.status().at("device = \"" + std::string(name_of(run.options.device)) + "\"");
  return GpuRunStore{*std::move(store), std::move(home), plan.cache};
}

}  // namespace recmill::train
