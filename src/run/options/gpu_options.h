// SPDX-License-Identifier: Apache-2.0
// The section [gpu].
#pragma once

#include "schema/options.h"

namespace recmill::train {

/// Where a table's rows are stored, which a GPU reads and writes: its own memory, pinned memory
/// of the host, as many as fit in its own and the others in the host's, or of each table the hot
/// rows in its own and the others in the host's.
enum class GpuRowsIn { device, host, fit, hot };

/// What brings rows from one rank's GPU to another's.
enum class GpuExchangeKind { automatic, host, windows };

/// Whether layers are launched as graphs: where they may be, or else an error, or never.
enum class GpuGraphs { automatic, on, off };

}  // namespace recmill::train

namespace recmill {
template <>
struct EnumNames<train::GpuRowsIn> {
  static constexpr std::array names{std::pair{train::GpuRowsIn::device, std::string_view{"device"}},
                                    std::pair{train::GpuRowsIn::host, std::string_view{"host"}},
                                    std::pair{train::GpuRowsIn::fit, std::string_view{"fit"}},
                                    std::pair{train::GpuRowsIn::hot, std::string_view{"hot"}}};
};
template <>
struct EnumNames<train::GpuExchangeKind> {
  static constexpr std::array names{
      std::pair{train::GpuExchangeKind::automatic, std::string_view{"auto"}},
      std::pair{train::GpuExchangeKind::host, std::string_view{"host"}},
      std::pair{train::GpuExchangeKind::windows, std::string_view{"windows"}}};
};
template <>
struct EnumNames<train::GpuGraphs> {
  static constexpr std::array names{
      std::pair{train::GpuGraphs::automatic, std::string_view{"auto"}},
      std::pair{train::GpuGraphs::on, std::string_view{"on"}},
      std::pair{train::GpuGraphs::off, std::string_view{"off"}}};
};
}  // namespace recmill

namespace recmill::train {

struct GpuRunOptions {
  GpuRowsIn rows = GpuRowsIn::device;
  double memory_gib = 0.0;
  bool synchronous = false;
  bool check_nan = false;
  double kernel_seconds = 60.0;
  bool preprocess = false;
  GpuGraphs graphs = GpuGraphs::automatic;
  GpuExchangeKind exchange = GpuExchangeKind::automatic;
};
template <typename Visitor>
void describe(Visitor& v, GpuRunOptions& o) {
  v("rows", o.rows,
    "where rows are stored: device (the GPU's memory; the host's has a copy), host (pinned memory "
    "of "
    "the host, which the GPU reads and writes over the bus: slower, and bitwise the same), fit "
    "(whole tables in the GPU's memory, those of the most bytes looked up for each byte that they "
    "take, the others in the host's), or hot (of each table the rows that [hotset] makes hot in "
    "the "
    "GPU's memory, the others in the host's, which has a copy of all). With embedding.store = "
    "\"cached\" rows are stored in the "
    "host's memory, and the GPU has those that are needed next, whatever their table");
  v("memory_gib", o.memory_gib,
    "GiB of the GPU's memory that the run plans with, all of its ranks that have it together: less "
    "than is free leaves some to others, and to LibTorch and the driver, whose own is in no plan; "
    "0: all that is free",
    between(0, 0x1p26));
  v("synchronous", o.synchronous,
    "each kernel of Recmill's ends before the next is launched, so that an error names the one "
    "that failed; slow");
  v("check_nan", o.check_nan,
    "looked-up rows, updated rows and updated parameters of layers are read back after the kernels "
    "that write them: a NaN ends the run and names the kernel and the place; slow");
  v("kernel_seconds", o.kernel_seconds,
    "time that a stream's work may take before the run ends with an error that names the kernels "
    "that were launched and are not known to be done",
    above_up_to(0, 1e9));
  v("preprocess", o.preprocess,
    "preprocessing runs on the GPU, and its results come back to the host; features whose rows a "
    "dictionary gives are the CPU's; with device = \"cpu\" an error");
  v("graphs", o.graphs,
    "whether layers on the GPU are launched as two graphs a batch, from the third batch of a size "
    "on, because kernels of small batches take longer to be launched than to run: auto (wherever "
    "they may be), on (needs a GPU as device and train.deterministic = false, and no "
    "gpu.synchronous), or off. Those of models that read histories or ids, or draw random "
    "numbers, are launched one by one, and so are those that normalize over batches of several "
    "ranks");
  v("exchange", o.exchange,
    "what brings rows from one rank's GPU to another's: auto (NCCL where train.transport is nccl; "
    "windows where ranks are processes that all have one GPU; else as host), host (through the "
    "hosts' memory), windows (straight into memory that the "
    "processes of one host open of each other; several ranks may have the same GPU)");
}

}  // namespace recmill::train
