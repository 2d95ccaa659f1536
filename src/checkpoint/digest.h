// SPDX-License-Identifier: Apache-2.0
// What is in a checkpoint, in short, and where two of them part.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/reader.h"

namespace recmill::checkpoint {

/// One entry (a table's weights, a column of its state, a layer, a dictionary) or property.
struct Digest {
  std::string name;   // entry name, or "property/KEY"
  std::string shape;  // "float32 [1000, 16]"; empty for a property
  uint32_t crc = 0;   // CRC-32C of the rows in order, or of the property's JSON text
  bool operator==(const Digest&) const = default;
};

/// Of all entries by name, then of all properties: a function of what was saved, never of how it
/// was cut into parts and blocks.
Result<std::vector<Digest>> digests(Reader& reader);

/// Where two checkpoints differ.
struct Difference {
  std::string name;      // as in Digest
  int64_t row = -1;      // -1: not about one element
  int64_t element = -1;  // of the row
  std::string text;      // one line that names all of it, with both values
};

/// First differing element of each entry, in order of names, then each differing property, except
/// those of `ignored` keys. Bytes count: 0 and -0 differ, equal NaNs do not.
Result<std::vector<Difference>> compare(Reader& a, Reader& b,
                                        const std::vector<std::string>& ignored = {});

}  // namespace recmill::checkpoint
