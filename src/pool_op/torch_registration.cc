// SPDX-License-Identifier: Apache-2.0
// A compiled operator's one source that sees PyTorch: of it the interface that is the same from
// version 2.10 on, so that a library outlives upgrades. torch.ops.load_library loads it.
#include <dlfcn.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <optional>
#include <stdexcept>

#include "pool_op/pool_op.h"

namespace recmill::pool_op {
namespace {

using torch::headeronly::DeviceType;
using torch::headeronly::ScalarType;
using torch::stable::Device;
using torch::stable::Tensor;
using Tensors = std::vector<Tensor>;
using Weighting = std::optional<std::vector<std::optional<Tensor>>>;

[[noreturn]] void fail(const std::string& problem) {
  throw std::runtime_error("recmill::" + std::string(model.name) + ": " + problem);
}

ScalarType type_of(Weights weights) {
  return weights == Weights::float32    ? ScalarType::Float
         : weights == Weights::bfloat16 ? ScalarType::BFloat16
                                        : ScalarType::Half;
}

// As Python calls them.
std::string type_text(ScalarType type) {
  switch (type) {
    case ScalarType::Float:
      return "float32";
    case ScalarType::Double:
      return "float64";
    case ScalarType::Half:
      return "float16";
    case ScalarType::BFloat16:
      return "bfloat16";
    case ScalarType::Long:
      return "int64";
    case ScalarType::Int:
      return "int32";
    default:
      return toString(type);
  }
}
std::string device_text(const Device& device) {
  return device.is_cuda()  ? "cuda:" + std::to_string(device.index())
         : device.is_cpu() ? "cpu"
                           : "another device";
}
std::string shape_text(const Tensor& tensor) {
  std::string text = "[";
  for (int64_t d = 0; d < tensor.dim(); ++d)
    text += (d == 0 ? "" : ", ") + std::to_string(tensor.size(d));
  return text + "]";
}

/// What a tensor must be; `columns` < 0: it has one dimension.
struct Wanted {
  ScalarType type;
  int64_t columns;
  Device device;
};

/// What a tensor is called in errors, put together where there is one.
struct Role {
  const char* what;  // "rows of feature"
  const char* name;
  std::string text() const { return std::string(what) + " '" + name + "'"; }
};

void check(const Tensor& tensor, const Wanted& wanted, const Role& role) {
  const Device device = tensor.device();
  const bool shaped = wanted.columns < 0 ? tensor.dim() == 1
                                         : tensor.dim() == 2 && tensor.size(1) == wanted.columns;
  const bool placed =
      device.type() == wanted.device.type() && (!device.is_cuda() || device == wanted.device);
  const bool contiguous = tensor.is_contiguous();
  if (tensor.scalar_type() == wanted.type && shaped && placed && contiguous) return;
  const std::string shape =
      wanted.columns < 0 ? "[n]" : "[n, " + std::to_string(wanted.columns) + "]";
  fail(role.text() + " must be " + type_text(wanted.type) + " " + shape + ", contiguous, on " +
       device_text(wanted.device) + "; it is " + type_text(tensor.scalar_type()) + " " +
       shape_text(tensor) + (contiguous ? "" : ", not contiguous") + ", on " + device_text(device));
}

void check_count(size_t count, size_t wanted, const std::string& what) {
  if (count != wanted)
    fail(what + " must be " + std::to_string(wanted) + " tensors, not " + std::to_string(count));
}

/// The weights of a feature's lookups; null: it has none.
const Tensor* weights_of(const Weighting& weights, size_t f) {
  return weights.has_value() && (*weights)[f].has_value() ? &*(*weights)[f] : nullptr;
}

/// Types, shapes and devices of all tensors; offsets are of the host.
void check_tensors(const Tensors& tables, const Tensors& offsets, const Tensors& rows,
                   const Weighting& weights) {
  const size_t features = model.features.size();
  check_count(tables.size(), model.tables.size(), "tables");
  check_count(offsets.size(), features, "offsets");
  check_count(rows.size(), features, "rows");
  if (weights.has_value()) check_count(weights->size(), features, "weights");
  const Device device = tables[0].device();
  const Device host = device.is_cuda() ? Device(DeviceType::CPU) : device;
  for (size_t t = 0; t < tables.size(); ++t)
    check(tables[t], {type_of(model.tables[t].weights), model.tables[t].dim, device},
          {"table", model.tables[t].name});
  for (size_t f = 0; f < features; ++f) {
    const char* const name = model.features[f].name;
    const Role of_offsets{"offsets of feature", name}, of_weights{"weights of feature", name};
    check(offsets[f], {ScalarType::Long, -1, host}, of_offsets);
    if (offsets[f].numel() == 0) fail(of_offsets.text() + " must have one element at least");
    check(rows[f], {ScalarType::Long, -1, device}, {"rows of feature", name});
    const Tensor* const weight = weights_of(weights, f);
    if ((weight != nullptr) != model.features[f].weighted)
      fail(of_weights.text() + (weight != nullptr ? " must be None" : " are missing"));
    if (weight == nullptr) continue;
    check(*weight, {ScalarType::Float, -1, device}, of_weights);
    if (weight->numel() != rows[f].numel())
      fail(of_weights.text() + " must be as many as rows, " + std::to_string(rows[f].numel()) +
           ", not " + std::to_string(weight->numel()));
  }
}

Tensors new_outputs(const Tensors& tables, const Tensors& offsets, const Tensors& rows) {
  Tensors outputs;
  outputs.reserve(model.features.size());
  for (size_t f = 0; f < model.features.size(); ++f) {
    const Feature& of = model.features[f];
    const int64_t count = of.pooled ? offsets[f].numel() - 1 : rows[f].numel();
    outputs.push_back(new_empty(tables[of.table], {count, model.dim_of(f)}, ScalarType::Float));
  }
  return outputs;
}

/// A call's tensors as addresses, checked as far as the host can.
struct Addresses {
  std::vector<Rows> tables;
  std::vector<JaggedView> bags;
  std::vector<float*> outputs;
  Inputs inputs() const { return {tables, bags, outputs}; }
};

Addresses addresses_of(const Tensors& tables, const Tensors& offsets, const Tensors& rows,
                       const Weighting& weights, const Tensors& outputs) {
  Addresses of;
  for (const Tensor& table : tables) of.tables.push_back({table.const_data_ptr(), table.size(0)});
  for (size_t f = 0; f < model.features.size(); ++f) {
    const Tensor* const weight = weights_of(weights, f);
    const JaggedView bags = {
        static_cast<const int64_t*>(offsets[f].const_data_ptr()),
        static_cast<const int64_t*>(rows[f].const_data_ptr()),
        weight == nullptr ? nullptr : static_cast<const float*>(weight->const_data_ptr()),
        offsets[f].numel() - 1};
    if (const auto problem = problem_of_offsets(f, bags, rows[f].numel()); !problem.empty())
      fail(problem);
    of.bags.push_back(bags);
    of.outputs.push_back(static_cast<float*>(outputs[f].mutable_data_ptr()));
  }
  return of;
}

// Each of PyTorch's threads one call.
void in_parallel(int64_t count, void (*work)(void*, int64_t), void* of) {
  torch::stable::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work(of, i);
  });
}

Tensors on_cpu(const Tensors& tables, const Tensors& offsets, const Tensors& rows,
               const Weighting& weights) {
  check_tensors(tables, offsets, rows, weights);
  Tensors outputs = new_outputs(tables, offsets, rows);
  const Addresses of = addresses_of(tables, offsets, rows, weights, outputs);
  const auto threads = static_cast<int>(torch::stable::get_num_threads());
  const std::string problem = pool_on_cpu(of.inputs(), threads, in_parallel);
  if (!problem.empty()) fail(problem);
  return outputs;
}

/// PyTorch's memory: what is let go of is used again when the GPU is done with it.
class TorchMemory final : public CallMemory {
 public:
  explicit TorchMemory(const Tensor& of) : of_(of) {}
  Staged stage(int64_t bytes) override {
    host_ = torch::stable::empty({bytes}, ScalarType::Byte, std::nullopt, Device(DeviceType::CPU),
                                 /*pin_memory=*/true);
    device_ = new_empty(of_, {bytes}, ScalarType::Byte);
    return {static_cast<std::byte*>(host_->mutable_data_ptr()),
            static_cast<std::byte*>(device_->mutable_data_ptr())};
  }
  void send() override { copy_(*device_, *host_, /*non_blocking=*/true); }
  std::byte* scratch(int64_t bytes) override {
    return kept(new_empty(of_, {bytes}, ScalarType::Byte));
  }
  std::byte* zeros(int64_t bytes) override {
    return kept(new_zeros(of_, {bytes}, ScalarType::Byte));
  }

 private:
  std::byte* kept(Tensor memory) {
    kept_.push_back(std::move(memory));
    return static_cast<std::byte*>(kept_.back().mutable_data_ptr());
  }
  const Tensor& of_;  // whose GPU it is
  std::optional<Tensor> host_, device_;
  Tensors kept_;
};

/// PyTorch's current stream of a GPU. A PyTorch without CUDA has no such function, and its header
/// needs those of CUDA: so it is looked up where it would be.
void* current_stream(int32_t gpu) {
  using Get = AOTITorchError (*)(int32_t, void**);
  static const Get get = [] {
    void* const library = dlopen("libtorch_cuda.so", RTLD_NOLOAD | RTLD_LAZY);
    return library == nullptr
               ? nullptr
               : reinterpret_cast<Get>(dlsym(library, "aoti_torch_get_current_cuda_stream"));
  }();
  void* stream = nullptr;
  if (get == nullptr || get(gpu, &stream) != AOTI_TORCH_SUCCESS)
    fail("PyTorch tells no current stream of cuda:" + std::to_string(gpu));
  return stream;
}

Tensors on_cuda(const Tensors& tables, const Tensors& offsets, const Tensors& rows,
                const Weighting& weights) {
  check_tensors(tables, offsets, rows, weights);
  const int32_t gpu = tables[0].get_device_index();
  const torch::stable::accelerator::DeviceGuard guard(gpu);
  Tensors outputs = new_outputs(tables, offsets, rows);
  const Addresses of = addresses_of(tables, offsets, rows, weights, outputs);
  for (size_t f = 0; f < model.features.size(); ++f) {
    const int32_t t = model.features[f].table;
    if (reinterpret_cast<uintptr_t>(of.tables[t].data) % model.gpu[f].alignment != 0)
      fail("table '" + std::string(model.tables[t].name) + "' must begin at a multiple of " +
           std::to_string(model.gpu[f].alignment) + " bytes");
  }
  TorchMemory memory(tables[0]);
  const std::string problem = pool_on_gpu(of.inputs(), memory, gpu, current_stream(gpu));
  if (!problem.empty()) fail(problem);
  return outputs;
}

/// Shapes alone, for torch.compile and torch.export.
Tensors on_meta(const Tensors& tables, const Tensors& offsets, const Tensors& rows,
                const Weighting& weights) {
  check_tensors(tables, offsets, rows, weights);
  return new_outputs(tables, offsets, rows);
}

std::string described() {
  return model.description;
}

STABLE_TORCH_LIBRARY_FRAGMENT(recmill, library) {
  library.def(model.schema);
  library.def(model.description_schema);
}
STABLE_TORCH_LIBRARY_IMPL(recmill, CPU, library) {
  library.impl(model.name, TORCH_BOX(&on_cpu));
}
STABLE_TORCH_LIBRARY_IMPL(recmill, CUDA, library) {
  if (!model.gpu.empty()) library.impl(model.name, TORCH_BOX(&on_cuda));
}
STABLE_TORCH_LIBRARY_IMPL(recmill, Meta, library) {
  library.impl(model.name, TORCH_BOX(&on_meta));
}
STABLE_TORCH_LIBRARY_IMPL(recmill, CompositeExplicitAutograd, library) {
  library.impl(model.description_name, TORCH_BOX(&described));
}

}  // namespace
}  // namespace recmill::pool_op
