// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model/torch/torch_model.h"

namespace recmill::model {

/// TBSM, the time-based sequence model (Ishkhanov et al., 2020; FAE's RMC1): a small DLRM at each
/// step of a history, and attention over the steps by their products with the target's vector.
///
/// Features: histories are unpooled; the target of a history is the pooled feature on the same
/// table; other pooled features (the user) belong to every step. All histories of a sample have
/// equally many steps; the last T = options.sequence_length count. x are the sample's dense values.
///   z = bottom(x) [D], ReLU after each layer (absent without dense columns)
///   step(r_1 ... r_F) = top([z; v_i . v_j for i > j over v = (z, r_1 ... r_F)]), ReLU after each
///   h_t [K] = step(with histories' rows of step t, and the other pooled rows), t = 1 ... T
///   q [K]   = step(with the pooled rows: the target)
///   a [T]   : a_t = h_t . q; the steps are at the end, those before the history's start are 0
///   s [T]   = attention(a): layers T - options.attention - T, ReLU between; none: s = a
///   c [K]   = sum_t s_t h_t over the steps that exist
///   logit = over([c; q]), ReLU between
/// Parameters bottom.{2 l}, top.{2 l}, attention.{2 l}, over.{2 l}, each .weight and .bias.
std::unique_ptr<TorchModel> make_tbsm(const ModelOptions& options, const ModelSpec& spec);

}  // namespace recmill::model
