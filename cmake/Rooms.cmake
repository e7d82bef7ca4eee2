# How a room (a folder of cmake/rooms.txt) becomes a library, and the warnings and sanitizers every target is built with.
# SPDX-License-Identifier: MIT

add_library(reprise_options INTERFACE)
target_compile_options(reprise_options INTERFACE -Wall -Wextra -Werror)
target_include_directories(reprise_options INTERFACE ${PROJECT_SOURCE_DIR})
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # It takes an included source for a header, and version 12 sees overlaps in strings that are none (GCC 105651).
  target_compile_options(reprise_options INTERFACE -Wno-subobject-linkage -Wno-restrict)
endif()
target_compile_features(reprise_options INTERFACE cxx_std_20)
if(REPRISE_SANITIZE)
  # Optimisation and instrumentation together make GCC guess wrongly about
  # initialisation; everything else stays an error.
  target_compile_options(reprise_options INTERFACE
    -fsanitize=${REPRISE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
    # Fences, as in Asio, which TSan does not follow; it may at worst see a race that is none.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  if(REPRISE_SANITIZE MATCHES "undefined")
    # A fifth of the build: AddressSanitizer sees null pointers as well.
    target_compile_options(reprise_options INTERFACE -fno-sanitize=null,vptr,object-size)
  endif()
  string(REPLACE "fuzzer-no-link," "" link_sanitizers "${REPRISE_SANITIZE}")
  target_link_options(reprise_options INTERFACE -fsanitize=${link_sanitizers})
  if(REPRISE_SANITIZE MATCHES "address")
    # A program starts in half the time where nothing in it is relocated.
    target_link_options(reprise_options INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  endif()
endif()

# Reads cmake/rooms.txt: REPRISE_ROOMS, the folders in order; REPRISE_USES_<folder>, what each may include.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/rooms.txt)
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/rooms.txt lines REGEX "^[a-z]")
set(REPRISE_ROOMS)
foreach(line ${lines})
  string(REGEX MATCH "^([^ ]+) *\\| *([^|]*[^ |])? *\\|" matched "${line}")
  set(room ${CMAKE_MATCH_1})
  list(APPEND REPRISE_ROOMS ${room})
  string(REPLACE " " ";" REPRISE_USES_${room} "${CMAKE_MATCH_2}")
endforeach()

# room_target(OUT FOLDER): the library of a room, reprise_a_b for a/b.
function(room_target out folder)
  string(REPLACE "/" "_" name ${folder})
  set(${out} reprise_${name} PARENT_SCOPE)
endfunction()

# add_room(FOLDER [EXTERNAL targets...] [EXCLUDE files...] [ONLY files...])
# Makes the library of a room from FOLDER/*.cpp and links the rooms it may use.
function(add_room folder)
  cmake_parse_arguments(ROOM "" "" "EXTERNAL;EXCLUDE;ONLY" ${ARGN})
  if(NOT folder IN_LIST REPRISE_ROOMS)
    message(FATAL_ERROR "${folder} is not in cmake/rooms.txt")
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  if(ROOM_ONLY)
    list(TRANSFORM ROOM_ONLY PREPEND ${PROJECT_SOURCE_DIR}/${folder}/ OUTPUT_VARIABLE sources)
  endif()
  foreach(file ${ROOM_EXCLUDE})
    list(REMOVE_ITEM sources ${PROJECT_SOURCE_DIR}/${folder}/${file})
  endforeach()
  set(linked)
  if(NOT folder STREQUAL "formats/support")
    set(linked reprise_formats_support)
  endif()
  foreach(used ${REPRISE_USES_${folder}})
    room_target(target ${used})
    list(APPEND linked ${target})
  endforeach()
  room_target(target ${folder})
  add_library(${target} STATIC ${sources})
  target_link_libraries(${target} PUBLIC reprise_options ${linked} ${ROOM_EXTERNAL})
  if(REPRISE_SANITIZE AND folder MATCHES "^formats/(oplog|support|assemble)")
    target_compile_options(${target} PRIVATE -O1)  # every test spends its time there
  endif()
endfunction()
