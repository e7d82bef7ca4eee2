// SPDX-License-Identifier: MIT
// Keeps forks from slowing down: chains of them, and many.
#pragma once

namespace reprise {

/// Gives back what was freed: each fork copies the page tables of all memory, and each end of a process takes them
/// apart. Planning leaves several times as much behind as it keeps. Once, before the first fork.
void give_back_memory();

/// Remembers where the data of program and libraries is. Once, before the first fork.
void note_program_data();

/// Cuts the ties that fork makes between the memory of this process and its ancestors': the kernel enters each of its
/// memory areas with every ancestor that lives, so that a chain of n forks costs n^2 times the number of areas, most of
/// which are the data of libraries. Copies that data into areas of its own, at the same addresses. For a forked process
/// that has one thread; what cannot be had stays as it is. Does nothing before note_program_data().
void own_memory();

/// A chain this long calls it once more.
inline constexpr int kOwnMemoryEvery = 8;

}  // namespace reprise
