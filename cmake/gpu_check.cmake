# The third parties of the target gpu_check, all but LibTorch from the folder that tools/gpu_check_deps made: a
# machine with a GPU needs only a compiler, CMake and CUDA's toolkit beside it. Training is built where PyTorch is
# installed. Other targets cannot be built so.
set(GPU_CHECK_DEPS "" CACHE PATH "the folder that tools/gpu_check_deps made")
find_package(Threads REQUIRED)

# recmill_door_of_folder(name [LIBRARY...]): headers, and libraries of its lib/.
function(recmill_door_of_folder name)
  recmill_door(${name})
  target_include_directories(recmill_door_${name} SYSTEM INTERFACE $<BUILD_INTERFACE:${GPU_CHECK_DEPS}/include>)
  foreach(library IN LISTS ARGN)
    set(file ${GPU_CHECK_DEPS}/lib/${library})
    if(NOT EXISTS ${file})
      message(FATAL_ERROR "GPU_CHECK_DEPS: ${file} is missing: tools/gpu_check_deps makes the folder")
    endif()
    target_link_libraries(recmill_door_${name} INTERFACE $<BUILD_INTERFACE:${file}>)
  endforeach()
endfunction()

list(APPEND CMAKE_BUILD_RPATH ${GPU_CHECK_DEPS}/lib)
recmill_door_of_folder(fmt libfmt.so.9)
recmill_door_of_folder(json)
recmill_door_of_folder(toml)
recmill_door_of_folder(bzip2 libbz2.so.1.0)
recmill_door_of_folder(zlib libz.so.1)
recmill_door_of_folder(zstd libzstd.so.1)
recmill_door_of_folder(highway libhwy.so.1)
recmill_door_of_folder(highway_portable libhwy.so.1)
target_compile_definitions(recmill_door_highway_portable INTERFACE ${RECMILL_PORTABLE_HIGHWAY})
recmill_door_of_folder(gtest libgmock.a libgtest.a libgtest_main.a)
target_link_libraries(recmill_door_gtest INTERFACE Threads::Threads)

if(RECMILL_TORCH)
  get_filename_component(RECMILL_SITE ${GPU_CHECK_TORCH} DIRECTORY)
  set(RECMILL_PYTHON ${GPU_CHECK_PYTHON})
  include(cmake/torch.cmake)
  # LibTorch itself knows where that is which it links, and the linker may not find it.
  target_link_options(recmill_door_torch INTERFACE -Wl,--unresolved-symbols=ignore-in-shared-libs)
  recmill_door_of_folder(onednn)
  set(RECMILL_ONEDNN_LIBRARY libdnnl.so.2) # which is opened
  # A program's RPATH, not its RUNPATH, is also that of what its libraries link: libOpenCL and OpenMP.
  target_link_options(recmill_door_onednn INTERFACE -Wl,--disable-new-dtags)
endif()
