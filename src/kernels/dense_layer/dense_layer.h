// SPDX-License-Identifier: Apache-2.0
// A fully connected layer on the CPU device, y = act(x W^T + b), and its gradients. The only door
// of oneDNN.
//
//   forward:   y[i][o]  = act(b[o] + sum over k of x[i][k] W[o][k])
//   backward:  g[i][o]  = act == relu && !(y[i][o] > 0) ? 0 : dy[i][o]
//              db[o]   (+)= sum over i of g[i][o]              (a fold in the order of samples)
//              dW[o][k](+)= sum over i of g[i][o] x[i][k]
//              dx[i][k]  = sum over o of g[i][o] W[o][k]
//
// bfloat16: x, W and g are rounded to bfloat16 (to nearest, ties to even) for the products; sums,
// b, db and dW are float32; the master weights stay the caller's float32.
//
// Determinism. A call computes at most kBlock samples on the calling thread, and its order of
// summation is a function of the layer's sizes and the number of samples alone (in float32 that of
// products.h: over samples and over a layer's units from left to right); a slice is computed in
// blocks of kBlock samples in order. So results are bitwise independent of threads and ranks (on
// one instruction set).
//
// Layout. In float32 activations and their gradients are by feature, a block's x as
// [inputs][samples] and y as [outputs][samples]: then both products read W as the optimizer left
// it, each row once, and no step packs weights. In bfloat16 they are by sample, x as
// [samples][inputs], as oneDNN's fast kernels want them.
//
// Why products of our own in float32 (products.h). In a training step weights and their gradients
// come from the third-level cache. Ours fetch the next rows of weights while they multiply with
// these; oneDNN 2.6.3 on weights packed by us reached 80 to 86 % of the FMA peak over all layers of
// a DLRM 13-512-256-64-16, 367-512-256 at 64 and 128 samples (one thread of a Zen 5, AVX-512,
// 2026-11-21).
//
// Why oneDNN in bfloat16, with weights packed by us. Highway 1.0 has no name for its instruction.
// oneDNN's own reorder of one layer's weights takes as long as a block's product and would run on
// one thread; ours writes the same layout in pieces for the pool. Layers with one output are dot
// products of ours: oneDNN makes 12 Gflop/s there.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "kernels/precision.h"

namespace recmill::kernels::dense_layer {

/// Samples of one call, at most.
inline constexpr int64_t kBlock = 128;

enum class Activation { none, relu };

struct LayerSpec {
  int64_t inputs = 0;   // > 0
  int64_t outputs = 0;  // > 0
  Activation activation = Activation::none;
  Precision precision = Precision::float32;         // of x, dx and the products
  Precision output_precision = Precision::float32;  // of y and dy; bfloat16 only beside bfloat16
  bool needs_input_gradient = true;                 // false: backward computes no dx
};

/// What one call needs besides its arguments: in float32 x by sample, in bfloat16 g and oneDNN's
/// scratch memory. One for each slice or thread, for any number of layers; grows at first use, then
/// stays.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;

 private:
  friend class Layer;
  struct State;
  std::unique_ptr<State> state_;
};

/// What backward() reads and writes; element types as LayerSpec says. x, y, dy and dx by feature or
/// by sample as the layout above says.
struct BackwardArguments {
  const void* x = nullptr;           // as given to forward
  const void* y = nullptr;           // as forward left it; unused without an activation
  void* dy = nullptr;                // in float32 g is written over it
  void* dx = nullptr;                // unused without needs_input_gradient
  float* weight_gradient = nullptr;  // [outputs][inputs]
  float* bias_gradient = nullptr;    // [outputs]
  bool accumulate = false;  // false: overwrites the two (a slice's first block); true: adds to them
};

/// Whether this machine has the instructions of layers in bfloat16.
bool multiplies_bfloat16();
/// Fails when this machine cannot multiply in `precision` (bfloat16 needs AVX-512 with its bfloat16
/// extension).
Status check_precision(Precision precision);

class Layer {
 public:
  /// Fails by check_precision(), or where there is no memory for it.
  static Result<Layer> make(const LayerSpec& spec);
  ~Layer();
  Layer(Layer&&) noexcept;
  Layer& operator=(Layer&&) noexcept;

  const LayerSpec& spec() const;

  /// Takes new parameters into use, in pieces that may run on any threads, each exactly once:
  /// pack(t, ...) for t in [0, pack_tasks()). `weight` [outputs][inputs], `bias` [outputs]. Task t
  /// reads rows [pack_begin(t), pack_begin(t + 1)) of `weight`; task 0 reads `bias`. In float32
  /// `weight` must stay where and what it is until the next pack(): the products read it.
  int64_t pack_tasks() const;
  int64_t pack_begin(int64_t task) const;
  void pack(int64_t task, const float* weight, const float* bias);

  /// samples in [0, kBlock]; no gaps in x and y. Safe to call from several threads, each with its
  /// own workspace. `x_in_panels`: x is in product_panels(inputs), which is faster where there
  /// are many inputs; float32, and of no use to backward().
  void forward(int64_t samples, const void* x, void* y, Workspace& workspace,
               bool x_in_panels = false) const;
  void backward(int64_t samples, const BackwardArguments& arguments, Workspace& workspace) const;

 private:
  struct State;
  explicit Layer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Tells OpenMP, which oneDNN runs on, to stay on the calling thread: the start of every thread of
/// a pool that computes layers (ThreadPool::set_thread_start). Calls are right without it, but then
/// switch OpenMP to and fro.
void use_one_thread();

}  // namespace recmill::kernels::dense_layer
