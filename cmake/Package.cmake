# What `cmake --install` puts where, and the Debian package CPack makes of it.
# SPDX-License-Identifier: MIT
include(GNUInstallDirs)

# Man pages and completion scripts come from the binary, so they cannot go stale.
find_program(GZIP_PROGRAM gzip REQUIRED)
set(generated ${PROJECT_BINARY_DIR}/generated)
add_custom_command(
  OUTPUT ${generated}/docs.stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${generated}/man1
  COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}/man1
  COMMAND reprise __man --all ${generated}/man1
  COMMAND ${GZIP_PROGRAM} -9nr ${generated}/man1
  COMMAND reprise completion bash > ${generated}/reprise.bash
  COMMAND reprise completion zsh > ${generated}/_reprise
  COMMAND reprise completion fish > ${generated}/reprise.fish
  COMMAND ${CMAKE_COMMAND} -E touch ${generated}/docs.stamp
  DEPENDS reprise
  VERBATIM)
add_custom_target(generated_docs ALL DEPENDS ${generated}/docs.stamp)

# A build of the target reprise alone, as the quickstart makes it, has not made them yet.
install(CODE "execute_process(COMMAND \"${CMAKE_COMMAND}\" --build \"${PROJECT_BINARY_DIR}\" --target generated_docs
                              COMMAND_ERROR_IS_FATAL ANY)")
install(TARGETS reprise RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${generated}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} FILES_MATCHING PATTERN "*.1.gz")
install(FILES ${generated}/reprise.bash RENAME reprise
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${generated}/_reprise DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${generated}/reprise.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES LICENSE RENAME copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES formats/FORMAT.md DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN "*.svg" PATTERN "data" EXCLUDE)
install(FILES markers/reprise_marker.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY markers/python/ DESTINATION ${CMAKE_INSTALL_DATADIR}/reprise/python
        FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/reprise/examples OPTIONAL
        FILES_MATCHING PATTERN "*.oplog" PATTERN "*.ini" PATTERN "*.md" PATTERN "*.py")

set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CPACK_GENERATOR DEB)
# Without the components of Mpi.cmake and Cupti.cmake.
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};reprise;Unspecified;/")
set(CPACK_PACKAGE_NAME reprise)
set(CPACK_PACKAGE_VENDOR "the reprise authors")
set(CPACK_PACKAGE_CONTACT "the reprise authors <reprise@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "record the I/O of a job once, replay it anywhere")
set(CPACK_PACKAGE_DESCRIPTION "reprise turns recordings of a job's system calls into an op log and performs them
 again on another machine, file system or storage, with its causes kept and
 without its accelerators, and compares the two.")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
include(CPack)
