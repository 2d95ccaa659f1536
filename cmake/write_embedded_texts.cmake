# Writes ${OUTPUT}: functions NAME_text() of namespace ${NAMESPACE}, declared in ${HEADER}, that return the
# text of each of ${FILES} (separated by |); NAME is that of the file, of a .cc file NAME_source.
string(REPLACE "|" ";" files "${FILES}")
set(functions "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WE)
  if(file MATCHES "\\.cc$")
    string(APPEND name _source)
  endif()
  file(READ ${file} text)
  string(APPEND functions "std::string_view ${name}_text() {
  return R\"embedded(${text})embedded\";
}
")
endforeach()
file(WRITE ${OUTPUT} "#include \"${HEADER}\"

namespace ${NAMESPACE} {
${functions}}  // namespace ${NAMESPACE}
")
