# SPDX-License-Identifier: Apache-2.0
# Prints (on stderr, as message() does) one shell command a line that checks a source with clang 14.
#   cmake -D DATABASE=compile_commands.json -D ROOT=FOLDER -P clang_syntax_commands.cmake
# Warnings that only g++ knows are let be.
# Only the sources under ROOT are listed that are no tests and not the command line's: those in model/, planner/, simulator/, executor/ and gui/.
file(READ "${DATABASE}" database)
string(JSON count LENGTH "${database}")
math(EXPR last "${count} - 1")
foreach(index RANGE ${last})
    string(JSON source GET "${database}" ${index} file)
    string(JSON folder GET "${database}" ${index} directory)
    string(JSON command GET "${database}" ${index} command)
    string(REPLACE "${ROOT}/" "" relative "${source}")
    if(relative MATCHES "^(model|planner|simulator|executor|gui)/.*[.]cpp$")
        string(FIND "${command}" " " compiler_end)
        string(SUBSTRING "${command}" ${compiler_end} -1 arguments)
        string(REGEX REPLACE " -o [^ ]+ -c " " " arguments "${arguments}")
        message("cd '${folder}' && clang++-14 -Wno-unknown-warning-option -fsyntax-only${arguments}")
    endif()
endforeach()
