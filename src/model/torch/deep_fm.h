// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model/torch/torch_model.h"

namespace recmill::model {

/// DeepFM (Guo et al., IJCAI 2017). e_f [D] is the pooled row of feature f, w_f its pooled
/// first-order weight (same lookups, same pooling), x the dense values.
///   logit = b + sum_f w_f + 1/2 sum_d [(sum_f e_fd)^2 - sum_f e_fd^2] + deep(input)
///   deep: a_l = W_l h_l + b_l;  h_{l+1} = dropout(ReLU(norm_l(a_l))), the last layer plain
///   input = x, e or [x; e] by options.deep_input
/// norm_l (options.batch_norm), in training, over the n samples of the GLOBAL batch:
///   mean = sum a / n;  var = sum (a - mean)^2 / n;  norm(a) = (a - mean) / sqrt(var + 1e-5) g + c
///   running mean and variance (unbiased: n var / (n - 1)) move by 0.1 an iteration; evaluation
///   normalises with them. Each normalised layer takes two synchronisations: sum a, then
///   sum (a - mean)^2; n travels as a float, exact up to 2^24 samples.
/// dropout in training: element j of hidden layer l (counted through all hidden layers) of a sample
/// is kept, divided by 1 - p, when Random(seed, dropout, iteration).uniform(global sample, j) >= p.
///
/// `spec` is with_model_tables()'s. first_order = table: w_f comes from tables of dimension 1, the
/// model has only b. first_order = dense: a parameter first_order.weight [rows of all tables, 1],
/// table t's from row (sum of the rows of tables before t); needs SliceInput::rows.
/// Parameters first_order.bias [1], [first_order.weight,] deep.{2 l}.{weight,bias} (an
/// nn.Sequential of Linear and ReLU), norm.l.{weight,bias,running_mean,running_var} (an
/// nn.ModuleList).
std::unique_ptr<TorchModel> make_deep_fm(const ModelOptions& options, const ModelSpec& spec,
                                         uint64_t seed);

}  // namespace recmill::model
