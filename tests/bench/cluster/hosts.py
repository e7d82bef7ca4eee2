# SPDX-License-Identifier: MIT
"""Owns hosts that are network namespaces of this machine, joined by a switch, and how MPI starts ranks on them.

node1 has the address 10.77.0.1. All hosts see this program's mounts, so a mounted folder is storage that they share. What is
made here is gone afterwards, with every process inside.
"""

import os
import pathlib
import signal
import subprocess
import time

from storage import command, die_with_parent

# mpirun notices within seconds, too, that a host is cut off, after the ranks have; it leaves them time for their result.
SETTINGS = ("oob_tcp_if_include eth0", "btl_tcp_if_include eth0", "oob_tcp_keepalive_time 3", "oob_tcp_keepalive_intvl 1",
            "oob_tcp_keepalive_probes 2", "odls_base_sigkill_timeout 2", "btl self,vader,tcp", "btl_vader_single_copy_mechanism none",
            "hwloc_base_binding_policy none")


class Hosts:
    """`count` hosts; files of its own are in the folder `work`."""

    def __init__(self, count, work):
        self.count, self.name, self.agent = count, f"rb{os.getpid()}", pathlib.Path(work) / "agent"

    def space(self, host):
        return f"{self.name}-{host}"

    def address(self, host):
        return f"10.77.0.{host}"

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self):
        switch = self.space("s")
        command("ip", "netns", "add", switch)
        command("ip", "-n", switch, "link", "add", "switch", "type", "bridge")
        command("ip", "-n", switch, "link", "set", "switch", "up")
        for host in range(1, self.count + 1):
            space = self.space(host)
            command("ip", "netns", "add", space)
            command("ip", "-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", f"port{host}", "netns", switch)
            command("ip", "-n", switch, "link", "set", f"port{host}", "master", "switch", "up")
            command("ip", "-n", space, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
            command("ip", "-n", space, "link", "set", "eth0", "up")
            command("ip", "-n", space, "link", "set", "lo", "up")
        # What mpirun calls in place of ssh: the host, then the command for its shell.
        self.agent.write_text(f'#!/bin/sh\nhost=$1\nshift\nexec ip netns exec {self.name}-${{host##*.}} unshare --uts '
                              'sh -c "hostname node${host##*.}; $*"\n', encoding="ascii")
        self.agent.chmod(0o755)

    def __exit__(self, *_):
        for host in [*range(1, self.count + 1), "s"]:
            for process in self.processes(host):
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            command("ip", "netns", "del", self.space(host), check=False)

    def processes(self, host):
        found = command("ip", "netns", "pids", self.space(host), check=False)
        return [int(word) for word in found.split() if word.isdigit()]

    def on(self, host, *words):
        """The command for a program on that host."""
        return ["ip", "netns", "exec", self.space(host), "unshare", "--uts", "sh", "-c", f'hostname node{host}; exec "$@"', "sh",
                *map(str, words)]

    def mpirun(self, ranks, *words, environment=()):
        """The command for `ranks` ranks dealt over the hosts, started from host 1. `environment`: names that they get, too."""
        slots = ",".join(f"{self.address(host)}:{(ranks + self.count - host) // self.count}" for host in range(1, self.count + 1))
        settings = [part for setting in SETTINGS for part in ("--mca", *setting.split(" ", 1))]
        exported = [part for name in environment for part in ("-x", name)]
        return self.on(1, "mpirun", "-n", ranks, "--host", slots, "--oversubscribe", "--mca", "plm_rsh_agent", self.agent, *settings,
                       *exported, *words)

    def cut(self, host, off=True):
        """The link of that host goes down, or up again."""
        command("ip", "-n", self.space("s"), "link", "set", f"port{host}", "down" if off else "up")
        if not off:  # the others look for it anew
            for one in range(1, self.count + 1):
                command("ip", "-n", self.space(one), "neigh", "flush", "all")
            time.sleep(1)


ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
               "GLOO_SOCKET_IFNAME": "eth0", "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29533"}


def start(words, **more):
    return subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
                            preexec_fn=die_with_parent, env={**os.environ, **ENVIRONMENT, **more})


def execute(words, allowed=(0,), timeout=600, **more):
    """(what it printed, seconds). In a session of its own, so that nothing of it outlives an interruption."""
    begin = time.monotonic()
    child = start(words, **more)
    try:
        text = child.communicate(timeout=timeout)[0]
    except BaseException:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise
    if child.returncode not in allowed:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {child.returncode}\n{text[-3000:]}")
    return text, time.monotonic() - begin
