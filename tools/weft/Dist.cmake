# weft-dist: the objects of weft linked from archives alone, so that the program needs libc and libm and
# nothing else. Compiles nothing of its own. `tools/dist` packs it.

# weft_own_libraries(TARGET OUT): Weft's static libraries below TARGET, each once.
function(weft_own_libraries target out)
  set(found ${${out}})
  get_target_property(links ${target} LINK_LIBRARIES)
  foreach(library ${links})
    if(NOT library MATCHES "^weft_" OR NOT TARGET ${library} OR library IN_LIST found)
      continue()
    endif()
    get_target_property(type ${library} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      list(APPEND found ${library})
      weft_own_libraries(${library} found)
    endif()
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# Archives by path: the imported targets of Abseil, OpenBLAS and MLIR name shared libraries.
find_program(WEFT_LLD ld.lld HINTS ${LLVM_TOOLS_BINARY_DIR} NO_DEFAULT_PATH)
foreach(name openblas z zstd pcre2-8 absl_base)
  find_library(WEFT_STATIC_${name} NAMES lib${name}.a)
  if(NOT WEFT_STATIC_${name})
    list(APPEND missing lib${name}.a)
  endif()
endforeach()
if(NOT WEFT_LLD OR missing)
  message(STATUS "no target weft-dist: needs ld.lld (${WEFT_LLD}) and lacks: ${missing}")
  return()
endif()
get_filename_component(absl_folder ${WEFT_STATIC_absl_base} DIRECTORY)
file(GLOB absl ${absl_folder}/libabsl_*.a)
file(GLOB llvm ${LLVM_LIBRARY_DIRS}/libMLIR*.a ${LLVM_LIBRARY_DIRS}/libLLVM*.a)

set(own)
weft_own_libraries(weft own)
list(TRANSFORM own REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE own_files)
get_filename_component(lld_folder ${WEFT_LLD} DIRECTORY)

add_executable(weft-dist EXCLUDE_FROM_ALL $<TARGET_OBJECTS:weft>)
set_target_properties(weft-dist PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME weft LINK_DEPENDS "${own_files}"
                      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/dist)
add_dependencies(weft-dist ${own})
# Archives of a group are read again until nothing is missing; their order does not matter.
target_link_options(weft-dist PRIVATE -B${lld_folder} -fuse-ld=lld -static-libstdc++ -static-libgcc
                    LINKER:--gc-sections,--icf=all,-O2,--strip-all)
target_link_libraries(weft-dist PRIVATE -Wl,--start-group ${own_files} ${llvm} ${absl} ${WEFT_STATIC_openblas}
                      ${WEFT_STATIC_z} ${WEFT_STATIC_zstd} ${WEFT_STATIC_pcre2-8} -Wl,--end-group)
