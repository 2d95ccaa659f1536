# Writes ${OUTPUT}: the text of each of ${FILES} (separated by |) by the name of its file.
string(REPLACE "|" ";" files "${FILES}")
set(entries "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND entries "    {\"${name}\", R\"workload(${text})workload\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"config/workloads.h\"

namespace recmill::config {
namespace {
constexpr Workload all[] = {
${entries}};
}  // namespace
std::span<const Workload> workloads() { return all; }
}  // namespace recmill::config
")
