# How a room (a top-level folder) becomes a library, and the warnings and
# sanitizers every target of the project is built with.
# SPDX-License-Identifier: MIT

add_library(reprise_options INTERFACE)
target_compile_options(reprise_options INTERFACE -Wall -Wextra -Werror)
target_include_directories(reprise_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_features(reprise_options INTERFACE cxx_std_20)
if(REPRISE_SANITIZE)
  # Optimisation and instrumentation together make GCC guess wrongly about
  # initialisation; everything else stays an error.
  target_compile_options(reprise_options INTERFACE
    -fsanitize=${REPRISE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
    # Fences, as in Asio, which TSan does not follow; it may at worst see a race that is none.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  string(REPLACE "fuzzer-no-link," "" link_sanitizers "${REPRISE_SANITIZE}")
  target_link_options(reprise_options INTERFACE -fsanitize=${link_sanitizers})
endif()

# add_room(NAME [ROOMS other...] [EXTERNAL targets...] [EXCLUDE files...] [ONLY files...])
# Makes reprise_NAME from NAME/*.cpp. A room without sources yet becomes an
# interface library, so that whoever links it need not know.
function(add_room name)
  cmake_parse_arguments(ROOM "" "" "ROOMS;EXTERNAL;EXCLUDE;ONLY" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.cpp)
  if(ROOM_ONLY)
    list(TRANSFORM ROOM_ONLY PREPEND ${PROJECT_SOURCE_DIR}/${name}/ OUTPUT_VARIABLE sources)
  endif()
  foreach(file ${ROOM_EXCLUDE})
    list(REMOVE_ITEM sources ${PROJECT_SOURCE_DIR}/${name}/${file})
  endforeach()
  list(TRANSFORM ROOM_ROOMS PREPEND reprise_)
  if(sources)
    add_library(reprise_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(reprise_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(reprise_${name} ${scope} reprise_options ${ROOM_ROOMS} ${ROOM_EXTERNAL})
endfunction()
