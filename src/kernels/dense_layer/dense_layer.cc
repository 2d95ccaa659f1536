// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense_layer/dense_layer.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bfloat16.h"
#include "device/buffer.h"
#include "device/required_buffer.h"
#include "kernels/dense_layer/elementwise.h"
#include "kernels/dense_layer/open_onednn.h"
#include "kernels/dense_layer/panels.h"
#include "kernels/dense_layer/products.h"

namespace recmill::kernels::dense_layer {
namespace {

constexpr const char* kNeedsOfBfloat16 =
    "bfloat16 products need a CPU with AVX-512 and its bfloat16 extension";

// Rows of W that are taken into use at once.
constexpr int64_t kPackedRows = 64;

using dnnl::memory;
using dnnl::primitive_attr;

// oneDNN divides work by the threads that OpenMP reports, when it makes a primitive and when it
// runs one.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};

dnnl::engine& cpu() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory::data_type type_of(Precision precision) {
  return precision == Precision::float32 ? memory::data_type::f32 : memory::data_type::bf16;
}

memory::desc matrix(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
                    Precision precision) {
  return {{rows, columns}, type_of(precision), {row_stride, column_stride}};
}

// C = A B of one layer and one number of samples, by oneDNN.
struct Primitive {
  uint64_t identity;  // never reused, unlike an address
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
};

// B's layout is the library's choice (format `any`), or one that it chose before.
Result<std::unique_ptr<Primitive>> make_primitive(const memory::desc& a, const memory::desc& b,
                                                  const memory::desc& c, const memory::desc* bias,
                                                  const dnnl::post_ops& after) {
  static std::atomic<uint64_t> made{0};
  const OneThread one_thread;
  primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(after);
  const auto request = bias ? dnnl::matmul::desc(a, b, *bias, c) : dnnl::matmul::desc(a, b, c);
  try {
    dnnl::matmul::primitive_desc description(request, attributes, cpu());
    return std::make_unique<Primitive>(
        Primitive{made.fetch_add(1), description, dnnl::matmul(description)});
  } catch (const dnnl::error& error) {
    return Status::Failed(std::string("dense layer: oneDNN has no such product on this machine: ") +
                          error.what());
  }
}

// How a layout that oneDNN chose for B [depth][columns] stores it.
Result<PanelLayout> panels_of(const memory::desc& b) {
  const auto& blocks = b.data.format_desc.blocking;
  // Blocks [depth / 2][columns of a panel][2]; the depth within a panel is contiguous.
  const bool in_panels = blocks.inner_nblks == 3 && blocks.inner_idxs[0] == 0 &&
                         blocks.inner_idxs[1] == 1 && blocks.inner_idxs[2] == 0 &&
                         blocks.inner_blks[2] == 2 &&
                         blocks.strides[0] == blocks.inner_blks[0] * blocks.inner_blks[1] * 2;
  if (!in_panels) return Status::Failed("dense layer: oneDNN chose an unknown layout of weights");
  return PanelLayout{blocks.inner_blks[1], 2, blocks.strides[1]};
}

// The primitives of one kind, one for each number of samples; made at first use, read without a
// lock.
class Primitives {
 public:
  template <typename Make>
  const Primitive& get(int64_t samples, const Make& make) {
    auto& slot = ready_[static_cast<size_t>(samples)];
    if (const Primitive* found = slot.load(std::memory_order_acquire)) return *found;
    std::lock_guard lock(mutex_);
    if (const Primitive* found = slot.load(std::memory_order_relaxed)) return *found;
    auto made = make(samples);
    RECMILL_CHECK(made.ok(), made.status().message());  // make() of the layer has tried them
    owned_.push_back(*std::move(made));
    slot.store(owned_.back().get(), std::memory_order_release);
    return *owned_.back();
  }

 private:
  std::array<std::atomic<const Primitive*>, kBlock + 1> ready_{};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Primitive>> owned_;
};

Result<Buffer> allocate(int64_t bytes) {
  auto buffer = Buffer::allocate(static_cast<size_t>(bytes));
  if (!buffer.ok()) return buffer.status().at("dense layer");
  return buffer;
}

// Packed weights B [depth][columns] in one of the two orders, as oneDNN wants them.
struct PackedWeights {
  PanelLayout layout;
  Buffer data;
  memory::desc description;
  memory view;

  Status take(const memory::desc& chosen) {
    description = chosen;
    RECMILL_ASSIGN_OR_RETURN(layout, panels_of(chosen));
    RECMILL_ASSIGN_OR_RETURN(data, allocate(static_cast<int64_t>(chosen.get_size())));
    view = memory(chosen, cpu(), data.data());
    return {};
  }
};

}  // namespace

struct Workspace::State {
  // The memory objects of one product; null: not used by it.
  struct Bound {
    std::array<memory, 3> abc;
    memory scratch;
  };
  dnnl::stream stream;                        // of the first product
  std::unordered_map<uint64_t, Bound> bound;  // by Primitive::identity
  Buffer gradient;                            // g
  Buffer inputs;                              // x in panels
  Buffer scratch;

  static std::byte* grow(Buffer& buffer, int64_t bytes) {
    if (static_cast<int64_t>(buffer.size()) < bytes)
      buffer = required_buffer(static_cast<size_t>(bytes));
    return buffer.data();
  }

  Bound& bind(const Primitive& product) {
    auto [found, fresh] = bound.try_emplace(product.identity);
    if (fresh) {
      const auto& d = product.description;
      found->second.abc = {memory(d.src_desc(), cpu(), nullptr),
                           memory(d.weights_desc(), cpu(), nullptr),
                           memory(d.dst_desc(), cpu(), nullptr)};
      found->second.scratch = memory(d.scratchpad_desc(), cpu(), nullptr);
    }
    return found->second;
  }

  static dnnl_memory_t point(memory& m, const void* data) {
    m.set_data_handle(const_cast<void*>(data));
    return m.get();
  }

  // `packed`: B in place of `b`. `bias` may be null.
  void run(const Primitive& product, const void* a, const void* b, const memory* packed,
           const memory* bias, void* c) {
    Bound& m = bind(product);
    const auto bytes = static_cast<int64_t>(product.description.scratchpad_desc().get_size());
    std::array<dnnl_exec_arg_t, 5> arguments = {{
        {DNNL_ARG_SRC, point(m.abc[0], a)},
        {DNNL_ARG_WEIGHTS, packed ? packed->get() : point(m.abc[1], b)},
        {DNNL_ARG_DST, point(m.abc[2], c)},
        {DNNL_ARG_SCRATCHPAD, point(m.scratch, grow(scratch, bytes))},
        {DNNL_ARG_BIAS, bias ? bias->get() : nullptr},
    }};
    const OneThread one_thread;
    if (!stream) stream = dnnl::stream(cpu());
    const auto status = dnnl_primitive_execute(product.primitive.get(), stream.get(), bias ? 5 : 4,
                                               arguments.data());
    RECMILL_CHECK(status == dnnl_success, std::to_string(status));
  }
};

Workspace::Workspace() : state_(std::make_unique<State>()) {}
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

struct Layer::State {
  LayerSpec spec;
  Buffer bias;                    // float32 [outputs]
  const float* weight = nullptr;  // [outputs][inputs], the caller's; float32 only

  // bfloat16 only.
  PackedWeights forward_weights;   // B = W^T
  PackedWeights backward_weights;  // B = W
  memory bias_view;
  std::vector<float> single_weight;  // [inputs] when there is one output: as the products see it
  Primitives forward, data_gradient, weight_gradient, weight_gradient_sum;

  bool is_float32() const { return spec.precision == Precision::float32; }
  bool single() const { return spec.outputs == 1; }

  memory::desc any(int64_t rows, int64_t columns) const {
    return {{rows, columns}, type_of(spec.precision), memory::format_tag::any};
  }

  Result<std::unique_ptr<Primitive>> make_forward(int64_t samples, const memory::desc& b) const {
    dnnl::post_ops after;
    if (spec.activation == Activation::relu) {
      after.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
    }
    const memory::desc bias_description =
        matrix(1, spec.outputs, spec.outputs, 1, Precision::float32);
    return make_primitive(matrix(samples, spec.inputs, spec.inputs, 1, spec.precision), b,
                          matrix(samples, spec.outputs, spec.outputs, 1, spec.output_precision),
                          &bias_description, after);
  }

  Result<std::unique_ptr<Primitive>> make_data_gradient(int64_t samples,
                                                        const memory::desc& b) const {
    return make_primitive(matrix(samples, spec.outputs, spec.outputs, 1, spec.precision), b,
                          matrix(samples, spec.inputs, spec.inputs, 1, spec.precision), nullptr,
                          {});
  }

  Result<std::unique_ptr<Primitive>> make_weight_gradient(int64_t samples, bool accumulate) const {
    dnnl::post_ops after;
    if (accumulate) after.append_sum(1.0f);
    return make_primitive(matrix(spec.outputs, samples, 1, spec.outputs, spec.precision),
                          matrix(samples, spec.inputs, spec.inputs, 1, spec.precision),
                          matrix(spec.outputs, spec.inputs, spec.inputs, 1, Precision::float32),
                          nullptr, after);
  }

  Status prepare_bfloat16();
  void pack_bfloat16(const MatrixRows& rows);

  void forward_float32(int64_t samples, const float* x, float* y, bool x_in_panels) const;
  void forward_bfloat16(int64_t samples, const void* x, void* y, Workspace::State& workspace);
  void backward_float32(int64_t samples, const BackwardArguments& a,
                        Workspace::State& workspace) const;
  void backward_bfloat16(int64_t samples, const BackwardArguments& a, Workspace::State& workspace);
};

// Learns the layouts from the products of a whole block, and that all kinds exist on this machine.
Status Layer::State::prepare_bfloat16() {
  if (single()) {
    single_weight.assign(static_cast<size_t>(spec.inputs), 0.0f);
    return {};
  }
  bias_view =
      memory(matrix(1, spec.outputs, spec.outputs, 1, Precision::float32), cpu(), bias.data());
  RECMILL_ASSIGN_OR_RETURN(auto first, make_forward(kBlock, any(spec.inputs, spec.outputs)));
  RECMILL_RETURN_IF_ERROR(forward_weights.take(first->description.weights_desc()));
  if (spec.needs_input_gradient) {
    RECMILL_ASSIGN_OR_RETURN(auto second,
                             make_data_gradient(kBlock, any(spec.outputs, spec.inputs)));
    RECMILL_RETURN_IF_ERROR(backward_weights.take(second->description.weights_desc()));
  }
  return make_weight_gradient(kBlock, true).status();
}

bool multiplies_bfloat16() {
  if (!open_onednn().ok()) return false;
  const auto isa = static_cast<unsigned>(dnnl_get_effective_cpu_isa());
  return (isa & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
}

Status check_precision(Precision precision) {
  if (precision == Precision::float32) return {};
  RECMILL_RETURN_IF_ERROR(open_onednn());
  if (multiplies_bfloat16()) return {};
  return Status::Failed(kNeedsOfBfloat16);
}

Result<Layer> Layer::make(const LayerSpec& spec) {
  RECMILL_CHECK(spec.inputs > 0 && spec.outputs > 0);
  RECMILL_CHECK(spec.precision == Precision::bfloat16 ||
                spec.output_precision == Precision::float32);
  auto state = std::make_unique<State>();
  state->spec = spec;
  RECMILL_RETURN_IF_ERROR(check_precision(spec.precision));
  RECMILL_ASSIGN_OR_RETURN(state->bias,
                           allocate(spec.outputs * static_cast<int64_t>(sizeof(float))));
  if (!state->is_float32()) RECMILL_RETURN_IF_ERROR(state->prepare_bfloat16().at(kNeedsOfBfloat16));
  return Layer(std::move(state));
}

Layer::Layer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Layer::~Layer() = default;
Layer::Layer(Layer&&) noexcept = default;
Layer& Layer::operator=(Layer&&) noexcept = default;

const LayerSpec& Layer::spec() const {
  return state_->spec;
}

int64_t Layer::pack_tasks() const {
  return (state_->spec.outputs + kPackedRows - 1) / kPackedRows;
}

int64_t Layer::pack_begin(int64_t task) const {
  return std::min(state_->spec.outputs, task * kPackedRows);
}

void Layer::pack(int64_t task, const float* weight, const float* bias) {
  State& s = *state_;
  if (task == 0) {
    std::copy_n(bias, s.spec.outputs, s.bias.as<float>().data());
    s.weight = weight;
  }
  if (s.is_float32()) return;
  s.pack_bfloat16({weight, s.spec.outputs, s.spec.inputs, pack_begin(task), pack_begin(task + 1)});
}

void Layer::State::pack_bfloat16(const MatrixRows& rows) {
  if (single()) {
    for (size_t k = 0; k < single_weight.size(); ++k) {
      single_weight[k] = to_float(to_bfloat16(rows.data[k]));
    }
    return;
  }
  pack_transposed(rows, forward_weights.layout, spec.precision, forward_weights.data.data());
  if (!spec.needs_input_gradient) return;
  pack_straight(rows, backward_weights.layout, backward_weights.data.data());
}

void Layer::forward(int64_t samples, const void* x, void* y, Workspace& workspace,
                    bool x_in_panels) const {
  State& s = *state_;
  RECMILL_CHECK(!x_in_panels || s.is_float32());
  RECMILL_CHECK(samples >= 0 && samples <= kBlock, std::to_string(samples));
  if (samples == 0) return;
  if (s.is_float32()) {
    s.forward_float32(samples, static_cast<const float*>(x), static_cast<float*>(y), x_in_panels);
  } else {
    s.forward_bfloat16(samples, x, y, *workspace.state_);
  }
}

void Layer::backward(int64_t samples, const BackwardArguments& a, Workspace& workspace) const {
  State& s = *state_;
  RECMILL_CHECK(samples >= 0 && samples <= kBlock, std::to_string(samples));
  if (s.is_float32()) {
    s.backward_float32(samples, a, *workspace.state_);
  } else {
    s.backward_bfloat16(samples, a, *workspace.state_);
  }
}

void Layer::State::forward_float32(int64_t samples, const float* x, float* y,
                                   bool x_in_panels) const {
  multiply({.rows = spec.outputs,
            .columns = samples,
            .depth = spec.inputs,
            .a = weight,
            .a_stride = spec.inputs,
            .b = x,
            .b_in_panels = x_in_panels,
            .c = y,
            .bias = bias.as<float>().data(),
            .relu = spec.activation == Activation::relu});
}

void Layer::State::backward_float32(int64_t samples, const BackwardArguments& a,
                                    Workspace::State& workspace) const {
  // In place: what the layer above has just left in a cache.
  gradient_by_feature(spec, samples, a);
  const float* g = static_cast<const float*>(a.dy);
  const PanelLayout layout = product_panels(samples);
  const int64_t panels = (spec.inputs + layout.width - 1) / layout.width;
  std::byte* x = Workspace::State::grow(
      workspace.inputs, panels * layout.panel_stride * static_cast<int64_t>(sizeof(float)));
  pack_transposed({static_cast<const float*>(a.x), spec.inputs, samples, 0, spec.inputs}, layout,
                  Precision::float32, x);
  multiply({.rows = spec.outputs,
            .columns = spec.inputs,
            .depth = samples,
            .a = g,
            .a_stride = samples,
            .b = reinterpret_cast<const float*>(x),
            .b_in_panels = true,
            .c = a.weight_gradient,
            .accumulate = a.accumulate});
  if (!spec.needs_input_gradient) return;
  multiply({.rows = spec.inputs,
            .columns = samples,
            .depth = spec.outputs,
            .a = weight,
            .a_stride = spec.inputs,
            .a_transposed = true,
            .b = g,
            .c = static_cast<float*>(a.dx)});
}

void Layer::State::forward_bfloat16(int64_t samples, const void* x, void* y,
                                    Workspace::State& workspace) {
  if (single()) {
    single_output_forward(spec, samples, x, single_weight.data(), bias.as<float>()[0], y);
    return;
  }
  const Primitive& product =
      forward.get(samples, [&](int64_t n) { return make_forward(n, forward_weights.description); });
  workspace.run(product, x, nullptr, &forward_weights.view, &bias_view, y);
}

void Layer::State::backward_bfloat16(int64_t samples, const BackwardArguments& a,
                                     Workspace::State& workspace) {
  void* g =
      Workspace::State::grow(workspace.gradient, kBlock * spec.outputs * bytes_of(spec.precision));
  gradient_by_sample(spec, samples, a, g);
  if (single()) {
    single_output_backward(spec, samples, single_weight.data(), g, a);
    return;
  }
  if (samples == 0) {
    if (!a.accumulate) std::fill_n(a.weight_gradient, spec.outputs * spec.inputs, 0.0f);
    return;
  }
  Primitives& of_weights = a.accumulate ? weight_gradient_sum : weight_gradient;
  const Primitive& weights =
      of_weights.get(samples, [&](int64_t n) { return make_weight_gradient(n, a.accumulate); });
  workspace.run(weights, g, a.x, nullptr, nullptr, a.weight_gradient);
  if (!spec.needs_input_gradient) return;
  const Primitive& data = data_gradient.get(
      samples, [&](int64_t n) { return make_data_gradient(n, backward_weights.description); });
  workspace.run(data, g, nullptr, &backward_weights.view, nullptr, a.dx);
}

void use_one_thread() {
  omp_set_num_threads(1);
}

}  // namespace recmill::kernels::dense_layer
