// SPDX-License-Identifier: Apache-2.0
#include "step/gpu/gpu_step_kernels.h"

#include <algorithm>

#include "step/gpu/gpu_step_source.h"

namespace recmill::train {
namespace {

constexpr int64_t kBlocksPerSm = 4;

Grid grid_of(int64_t blocks) {
  return {{static_cast<unsigned>(blocks)}, {gpu::kStepThreads}};
}

int64_t blocks_for(int64_t count, int64_t most) {
  return std::min((count + gpu::kStepThreads - 1) / gpu::kStepThreads, most);
}

}  // namespace

Result<GpuStepKernels> GpuStepKernels::make(Gpu& gpu, const DenseOptimizer& optimizer,
                                            int64_t parameters,
                                            const kernels::codegen::CompileForGpu& compile) {
  GpuStepKernels made(gpu, optimizer, parameters);
  const auto sources = gpu_step_sources(optimizer.options(), "Recmill");
  RECMILL_ASSIGN_OR_RETURN(made.codes_, compile(sources));
  GpuKernel* const kernels[] = {&made.log_loss_, &made.squares_, &made.update_,
                                &made.sum_of_ranks_};
  for (size_t k = 0; k < std::size(kernels); ++k) {
    RECMILL_ASSIGN_OR_RETURN(*kernels[k], gpu.load(made.codes_[k].code));
  }
  RECMILL_RETURN_IF_ERROR(made.allocate());
  return made;
}

GpuBytes GpuStepKernels::need(int64_t parameters, int64_t states, int64_t stretches) {
  const int64_t vector = parameters * int64_t{sizeof(float)};
  const int64_t staged = stretches * int64_t{sizeof(gpu::ParameterStretch)};
  return {vector * states + gpu::kMostSums * int64_t{sizeof(double)} + staged, vector + staged};
}

Status GpuStepKernels::allocate() {
  const auto bytes = static_cast<size_t>(parameters_) * sizeof(float);
  const std::string what = "the dense optimizer";
  for (size_t s = 0; s < optimizer_->state().size(); ++s) {
    RECMILL_ASSIGN_OR_RETURN(auto state, gpu_->allocate(bytes, what));
    state_.push_back(std::move(state));
  }
  RECMILL_ASSIGN_OR_RETURN(staging_, gpu_->allocate_pinned(bytes, what));
  RECMILL_ASSIGN_OR_RETURN(sums_, gpu_->allocate(gpu::kMostSums * sizeof(double), what));
  const auto& trained = optimizer_->trained();
  const size_t stretches = trained.size() * sizeof(gpu::ParameterStretch);
  RECMILL_ASSIGN_OR_RETURN(stretches_, gpu_->allocate(stretches, what));
  RECMILL_ASSIGN_OR_RETURN(auto staged, gpu_->allocate_pinned(stretches, what));
  for (size_t i = 0; i < trained.size(); ++i)
    staged.as<gpu::ParameterStretch>()[i] = {trained[i].first, trained[i].count};
  RECMILL_ASSIGN_OR_RETURN(auto stream, gpu_->open_stream());
  RECMILL_RETURN_IF_ERROR(stream.to_device(stretches_, staged, stretches));
  return stream.synchronize();
}

int64_t GpuStepKernels::loss_blocks(int64_t samples) {
  return blocks_for(samples, gpu::kMostSums);
}

Status GpuStepKernels::log_loss(const gpu::LogLossArguments& of, GpuStream& stream) {
  return gpu_->launch(log_loss_, grid_of(loss_blocks(of.samples)), of, stream);
}

Status GpuStepKernels::sum_of_ranks(const gpu::SumOfRanksArguments& of, GpuStream& stream) const {
  return of.count == 0 ? Status()
                       : gpu_->launch(sum_of_ranks_, grid_of(blocks(of.count)), of, stream);
}

Status GpuStepKernels::load_state(GpuStream& stream) {
  for (size_t s = 0; s < state_.size(); ++s) {
    std::ranges::copy(optimizer_->state()[s].values, staging_.as<float>().begin());
    RECMILL_RETURN_IF_ERROR(stream.to_device(state_[s], staging_, state_[s].size()));
    RECMILL_RETURN_IF_ERROR(stream.synchronize());
  }
  return {};
}

Status GpuStepKernels::store_state(DenseOptimizer& optimizer, GpuStream& stream) {
  for (size_t s = 0; s < state_.size(); ++s) {
    RECMILL_RETURN_IF_ERROR(stream.to_host(staging_, state_[s], state_[s].size()));
    RECMILL_RETURN_IF_ERROR(stream.synchronize());
    std::ranges::copy(staging_.as<float>(), optimizer.state()[s].values.begin());
  }
  return {};
}

int64_t GpuStepKernels::blocks(int64_t count) const {
  return blocks_for(count, gpu_->properties().sms * kBlocksPerSm);
}

Status GpuStepKernels::update(float* parameters, const float* gradient, int64_t iteration,
                              double learning_rate_scale, GpuStream& stream) {
  if (parameters_ == 0) return {};
  gpu::DenseUpdateArguments of = {};
  of.parameters = parameters;
  of.gradient = gradient;
  of.first_state = state_.empty() ? nullptr : state_[0].address<float>();
  of.second_state = state_.size() < 2 ? nullptr : state_[1].address<float>();
  of.count = parameters_;
  of.stretches = stretches_.address<gpu::ParameterStretch>();
  of.stretch_count = static_cast<i32>(optimizer_->trained().size());
  of.constants = optimizer_->constants(iteration, learning_rate_scale);
  if (optimizer_->clips()) {
    const int64_t sums = blocks_for(parameters_, gpu::kMostSums);
    const gpu::SquaresArguments squares{gradient, parameters_, sums_.address<double>()};
    RECMILL_RETURN_IF_ERROR(gpu_->launch(squares_, grid_of(sums), squares, stream));
    of.squares = squares.sums;
    of.square_count = static_cast<i32>(sums);
    of.clip_norm = optimizer_->options().clip_norm;
  }
  RECMILL_RETURN_IF_ERROR(gpu_->launch(update_, grid_of(blocks(parameters_)), of, stream));
  return gpu_->check_nan(update_, parameters, 1, parameters_, parameters_, "the layers' parameters",
                         stream);
}

}  // namespace recmill::train
