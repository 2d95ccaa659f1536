// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/gpu/gpu_exchange.h"

namespace recmill {

/// One rank's.
struct GpuOfProcess {
  int64_t process = 0;
  std::array<std::byte, 16> gpu = {};  // GpuProperties::id
};
/// Whether each rank is a process of its own, and all have one GPU.
bool processes_share_one_gpu(std::span<const GpuOfProcess> ranks);

/// For ranks of one host, several of which may have the same GPU: each has memory of its GPU into
/// which the others' GPUs copy, and which their processes open, where they are others. The hosts
/// tell each other where; all_to_all() waits for the stream and for the other ranks.
class WindowGpuExchange final : public GpuExchange {
 public:
  /// Collective. Both outlive it; of the communicator as StagedGpuExchange::make().
  static Result<std::unique_ptr<WindowGpuExchange>> make(Gpu& gpu, Communicator& hosts);
  /// Whether processes_share_one_gpu(), the same at all ranks. Collective.
  static Result<bool> suits(const Gpu& gpu, Communicator& hosts);
  ~WindowGpuExchange() override;

  /// Fails, too, where processes cannot open each other's memory.
  Status all_to_all(std::span<const DevicePieces> to_rank, std::span<const DevicePieces> from_rank,
                    GpuStream& stream) override;
  Status wait(GpuStream& stream) override { return stream.synchronize(); }

 private:
  /// Of another rank's window.
  struct Opened {
    GpuMemoryHandle handle;
    void* memory = nullptr;  // null: not opened
  };
  /// What a rank tells another one: where its bytes go, and how many are awaited.
  struct Place {
    GpuMemoryHandle window;
    size_t at = 0, bytes = 0;
  };

  WindowGpuExchange(Gpu& gpu, Communicator& hosts)
      : gpu_(gpu), hosts_(hosts), opened_(hosts.ranks()) {}
  Status reserve_window(size_t bytes);
  Result<std::vector<Place>> tell_places(std::span<const size_t> incoming);
  Status open(int rank, const Place& place);
  void close(Opened& opened);

  Gpu& gpu_;
  Communicator& hosts_;
  GpuBuffer window_, before_;   // the one before: others may have it open
  bool is_shared_ = false;      // some rank is of another process
  GpuMemoryHandle handle_;      // of window_
  std::vector<Opened> opened_;  // [ranks]
  GpuEvent emptied_;            // the window
};

}  // namespace recmill
