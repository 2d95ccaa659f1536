# Installs the build, builds examples/cpp against the installation, and runs both programs; none of them
# may need a file of the source tree.
set(work ${BUILD}/install_test)
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${work})

function(run)
  cmake_parse_arguments(ARG "" "OUTPUT" "COMMAND" ${ARGN})
  execute_process(COMMAND ${ARG_COMMAND} WORKING_DIRECTORY ${work} RESULT_VARIABLE status
                  OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    file(REMOVE_RECURSE ${work})
    message(FATAL_ERROR "${ARG_COMMAND}: ${status}\n${output}")
  endif()
  if(ARG_OUTPUT)
    set(${ARG_OUTPUT} "${output}" PARENT_SCOPE)
  endif()
endfunction()

function(check_standalone program)
  run(COMMAND ldd ${program} OUTPUT libraries)
  if(libraries MATCHES "not found" OR libraries MATCHES "${SOURCE}/\\.venv")
    message(FATAL_ERROR "${program} needs what is not installed:\n${libraries}")
  endif()
endfunction()

file(MAKE_DIRECTORY ${work})
run(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
check_standalone(${prefix}/bin/recmill)
set(torch_library ${prefix}/lib/recmill/librecmill_torch.so)
check_standalone(${torch_library})
run(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/examples/cpp -B ${work}/cpp -DCMAKE_PREFIX_PATH=${prefix})
run(COMMAND ${CMAKE_COMMAND} --build ${work}/cpp)
check_standalone(${work}/cpp/train_in_cpp)
run(COMMAND ${prefix}/bin/recmill synth --rows 20000 --eval-rows 4000 --out data/quickstart)
run(COMMAND ${work}/cpp/train_in_cpp ${SOURCE}/examples/quickstart.toml OUTPUT result)
# LibTorch is opened by both programs, and is missed in one line.
file(WRITE ${work}/deep_fm.toml "[data]
format = 'synthetic'
synthetic = {rows = 2000, eval_rows = 500, cardinality_scale = 0.001}
[embedding]
rows = 500
dim = 8
[model]
kind = 'deep_fm'
deep = [8, 1]
[train]
batch_size = 128
")
run(COMMAND ${work}/cpp/train_in_cpp deep_fm.toml OUTPUT with_torch)
run(COMMAND ${prefix}/bin/recmill train deep_fm.toml --overwrite)
file(REMOVE ${torch_library})
execute_process(COMMAND ${prefix}/bin/recmill train deep_fm.toml --overwrite WORKING_DIRECTORY ${work}
                RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE missing)
file(REMOVE_RECURSE ${work})
foreach(output result with_torch)
  if(NOT ${output} MATCHES "best: 0")
    message(FATAL_ERROR "train_in_cpp printed:\n${${output}}")
  endif()
endforeach()
if(NOT status EQUAL 1 OR NOT missing MATCHES "LibTorch: librecmill_torch.so: cannot open[^\n]*make install[^\n]*\n$")
  message(FATAL_ERROR "without librecmill_torch.so: ${status}\n${missing}")
endif()
message(STATUS "${result}")
