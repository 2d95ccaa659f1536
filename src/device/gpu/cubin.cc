// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/cubin.h"

#include <elf.h>

#include <cstring>
#include <map>
#include <string>

namespace recmill {
namespace {

constexpr uint8_t kFrameSize = 0x11, kRegisters = 0x2f;  // attributes of .nv.info
constexpr uint8_t kSized = 4;                            // format: two bytes of size, then a value
// Of shared memory, which since sm_90 is counted with each kernel's own.
constexpr int64_t kReserved = 1024;

class Elf {
 public:
  explicit Elf(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// Whether headers, sections and their names lie within.
  bool open() {
    if (!read(0, header_) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
        header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_shentsize != sizeof(Elf64_Shdr))
      return false;
    const uint64_t segments = uint64_t{header_.e_phnum} * header_.e_phentsize;
    if (header_.e_phoff > bytes_.size() || segments > bytes_.size() - header_.e_phoff) return false;
    for (unsigned s = 0; s < header_.e_shnum; ++s) {
      Elf64_Shdr& section = sections_.emplace_back();
      if (!read(header_.e_shoff + s * sizeof section, section)) return false;
      const bool has_bytes = section.sh_type != SHT_NOBITS;
      if (has_bytes && (section.sh_offset > bytes_.size() ||
                        section.sh_size > bytes_.size() - section.sh_offset))
        return false;
    }
    return header_.e_shstrndx < sections_.size();
  }
  /// 90: sm_90.
  int architecture() const { return static_cast<int>(header_.e_flags >> 8 & 0xff); }
  std::span<const Elf64_Shdr> sections() const { return sections_; }
  std::span<const std::byte> content(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS) return {};  // what it says of a place means nothing
    return bytes_.subspan(section.sh_offset, section.sh_size);
  }
  std::string section_name(const Elf64_Shdr& section) const {
    return text(sections_[header_.e_shstrndx], section.sh_name);
  }
  std::string text(const Elf64_Shdr& strings, uint64_t at) const {
    const auto all = content(strings);
    if (at >= all.size()) return "";
    const auto* begin = reinterpret_cast<const char*>(all.data()) + at;
    return std::string(begin, strnlen(begin, all.size() - at));
  }

 private:
  template <class T>
  bool read(uint64_t at, T& to) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof to) return false;
    std::memcpy(&to, bytes_.data() + at, sizeof to);
    return true;
  }
  const std::span<const std::byte> bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
};

std::vector<std::string> symbol_names(const Elf& elf) {
  std::vector<std::string> names;
  for (const Elf64_Shdr& section : elf.sections()) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= elf.sections().size()) continue;
    const auto bytes = elf.content(section);
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= bytes.size(); at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, bytes.data() + at, sizeof symbol);
      names.push_back(elf.text(elf.sections()[section.sh_link], symbol.st_name));
    }
  }
  return names;
}

/// Calls take(attribute, symbol, value) for what .nv.info says of symbols.
template <class Take>
void read_info(std::span<const std::byte> info, const Take& take) {
  for (size_t at = 0; at + 4 <= info.size();) {
    const auto format = std::to_integer<uint8_t>(info[at]);
    const auto attribute = std::to_integer<uint8_t>(info[at + 1]);
    uint16_t size = 0;
    std::memcpy(&size, info.data() + at + 2, sizeof size);
    at += 4;
    if (format != kSized) continue;  // two bytes of value, in the place of the size
    if (size == 8 && at + 8 <= info.size()) {
      uint32_t words[2];
      std::memcpy(words, info.data() + at, sizeof words);
      take(attribute, words[0], words[1]);
    }
    at += size;
  }
}

}  // namespace

Result<std::vector<KernelResources>> read_cubin(std::span<const std::byte> cubin) {
  Elf elf(cubin);
  if (!elf.open()) return Status::Failed("not a compiled binary of kernels, or cut off");
  std::vector<KernelResources> kernels;
  std::map<std::string, size_t> place;
  const std::string text = ".text.", shared = ".nv.shared.";
  for (const Elf64_Shdr& section : elf.sections()) {
    const std::string name = elf.section_name(section);
    if (!name.starts_with(text)) continue;
    place[name.substr(text.size())] = kernels.size();
    kernels.push_back({name.substr(text.size())});
  }
  const auto symbols = symbol_names(elf);
  for (const Elf64_Shdr& section : elf.sections()) {
    const std::string name = elf.section_name(section);
    if (name.starts_with(shared) && place.contains(name.substr(shared.size()))) {
      const auto size = static_cast<int64_t>(section.sh_size);
      kernels[place[name.substr(shared.size())]].shared =
          elf.architecture() >= 90 && size >= kReserved ? size - kReserved : size;
    }
    if (name != ".nv.info") continue;
    read_info(elf.content(section), [&](uint8_t attribute, uint32_t symbol, uint32_t value) {
      const auto found = symbol < symbols.size() ? place.find(symbols[symbol]) : place.end();
      if (found == place.end()) return;
      if (attribute == kRegisters) kernels[found->second].registers = static_cast<int>(value);
      if (attribute == kFrameSize) kernels[found->second].stack = value;
    });
  }
  return kernels;
}

}  // namespace recmill
