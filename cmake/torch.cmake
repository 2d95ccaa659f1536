# The door of LibTorch: that of the wheel of PyTorch in RECMILL_SITE. A program opens the library that links it
# (src/model/torch_library.h), and finds it beside itself, or in lib/recmill of an installation.
list(APPEND CMAKE_BUILD_RPATH ${CMAKE_BINARY_DIR})
list(APPEND CMAKE_INSTALL_RPATH $ORIGIN/../lib/recmill)
recmill_door(torch)
recmill_wheel_libraries(torch torch/lib libtorch_cpu.so libc10.so)
# A process has one OpenMP library: the wheel's, which libtorch_cpu.so finds beside itself. FindOpenMP
# takes it from here for what runs on oneDNN, so that the one that is linked is the one that is loaded.
if(EXISTS ${RECMILL_SITE}/torch/lib/libgomp.so.1)
  recmill_install_wheel_libraries(torch/lib libgomp.so.1)
  set(OpenMP_gomp_LIBRARY ${RECMILL_SITE}/torch/lib/libgomp.so.1)
endif()
# And one C++ library, the shared one, which LibTorch links, also where a compiler takes the static one: of two, the
# one ends streams whose locales the other counts, and the program is aborted at its end.
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.so.6 OUTPUT_VARIABLE library
                OUTPUT_STRIP_TRAILING_WHITESPACE)
get_filename_component(library ${library} ABSOLUTE)
if(EXISTS ${library})
  set(RECMILL_ONE_CPP_LIBRARY $<BUILD_INTERFACE:${library}>) # of the programs that open LibTorch
  target_link_libraries(recmill_door_torch INTERFACE ${library})
endif()
# Searched last: the wheel brings its own copies of other people's headers (fmt, protobuf).
foreach(include include include/torch/csrc/api/include)
  target_compile_options(recmill_door_torch INTERFACE "SHELL:-idirafter ${RECMILL_SITE}/torch/${include}")
endforeach()
# libtorch_cpu.so itself links the CUDA profiling libraries of the wheel; nothing of them runs.
set(profiling nvidia/cu13/lib)
recmill_install_wheel_libraries(${profiling} libcupti.so.13 libcudart.so.13)
target_link_options(recmill_door_torch INTERFACE -Wl,-rpath-link,${RECMILL_SITE}/${profiling})
# LibTorch's half for GPUs is opened when layers are computed there: it goes along where `make setup-cuda` has
# brought what it links.
if(EXISTS ${RECMILL_SITE}/nvidia/cu13/lib/libcublas.so.13)
  recmill_install_wheel_libraries(torch/lib libtorch_cuda.so libtorch_cuda_linalg.so libtorch_nvshmem.so libc10_cuda.so)
  foreach(folder nvidia/cu13/lib nvidia/cudnn/lib nvidia/cusparselt/lib nvidia/nccl/lib nvidia/nvshmem/lib)
    file(GLOB libraries RELATIVE ${RECMILL_SITE}/${folder} ${RECMILL_SITE}/${folder}/*.so*)
    recmill_install_wheel_libraries(${folder} ${libraries})
  endforeach()
endif()
