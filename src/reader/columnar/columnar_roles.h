// SPDX-License-Identifier: Apache-2.0
// How the fields of a file that we write say what they are (docs/formats/columnar.md).
#pragma once

namespace recmill::reader {

inline constexpr char kRoleKey[] = "recmill.role";  // in a field's metadata: the ColumnRole's name
inline constexpr char kWeightsRole[] = "id_weights";  // ... or this, for the weights of a bag
inline constexpr char kSchemaCrcKey[] = "recmill.schema_crc32c";  // in the schema's metadata
inline constexpr char kBatchCrcKey[] = "recmill.crc32c";  // in a record batch's: of each field
inline constexpr char kWeightsSuffix[] = ".weights";      // the weights of bag C1 are C1.weights

}  // namespace recmill::reader
