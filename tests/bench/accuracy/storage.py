# SPDX-License-Identifier: MIT
"""Owns the storages of the experiments: file systems on devices of their own, tmpfs, and a limit on what a device moves.

A storage is a context manager: what it makes (image, device, mounts, limit) is gone afterwards, also on Ctrl-C.
"""

import os
import pathlib
import subprocess
import time

MB = 1_000_000
READ_AHEAD_KIB = 128  # what most devices have; a loop device takes over what the disk below it happens to have


def command(*words, check=True):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}: {done.stdout.strip()}")
    return done.stdout


def unmount(path):
    for _ in range(50):
        if not os.path.ismount(path):
            return
        if subprocess.run(["umount", str(path)], stderr=subprocess.DEVNULL).returncode == 0:
            return
        time.sleep(0.1)
    command("umount", "-l", path, check=False)


def read_all(folder):
    """Bytes read."""
    total = 0
    for root, _folders, files in os.walk(folder):
        for name in files:
            with open(os.path.join(root, name), "rb", buffering=0) as file:
                while part := file.read(1 << 16):
                    total += len(part)
    return total


class Limit:
    """Bytes per second of one block device, by the blkio controller (version 1) of control groups.

    A group's limit holds for the I/O that its own tasks submit. It is set for the group of this process, to which jobs
    and replays belong, and for the root group, to which the kernel's writers of dirty pages belong.
    """

    def __init__(self, device, bytes_per_second):
        self.device, self.rate, self.groups = device, bytes_per_second, []
        base = pathlib.Path("/sys/fs/cgroup/blkio")
        if not (base / "blkio.throttle.read_bps_device").exists():
            raise RuntimeError("a limited storage needs control groups of version 1 with the controller blkio at /sys/fs/cgroup/blkio")
        own = "/"
        for line in open("/proc/self/cgroup", encoding="ascii"):
            if ":blkio:" in line:
                own = line.strip().split(":", 2)[2]
        self.groups = sorted({base, base / own.lstrip("/")})

    def set(self, on):
        for group in self.groups:
            for way in ("read", "write"):
                (group / f"blkio.throttle.{way}_bps_device").write_text(f"{self.device} {self.rate if on else 0}\n")


class Storage:
    """`kind` is ext4, xfs, btrfs or tmpfs; `limit` in MB/s. `path` is where it is mounted."""

    def __init__(self, name, kind, limit=None, folder=None, memory=False, size_mib=1024):
        self.name, self.kind, self.size_mib = name, kind, size_mib
        self.rate = limit * MB if limit else None
        self.folder = pathlib.Path(folder)
        self.path, self.image = self.folder / "mnt" / name, self.folder / "images" / f"{name}.img"
        self.memory = memory
        self.device = self.limit = None

    def __enter__(self):
        try:
            self.path.mkdir(parents=True)
            if self.kind != "tmpfs":
                self._make_device()
            self._mount()
            if self.rate:
                self.limit = Limit((pathlib.Path("/sys/block") / self.device.name / "dev").read_text().strip(), self.rate)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make_device(self):
        self.device = self._zram() if self.memory else self._loop()
        (pathlib.Path("/sys/block") / self.device.name / "queue/read_ahead_kb").write_text(str(READ_AHEAD_KIB))
        command(f"mkfs.{self.kind}", *{"ext4": ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
                                       "xfs": ["-q", "-f"], "btrfs": ["-q", "-f"]}[self.kind], self.device)

    def _loop(self):
        self.image.parent.mkdir(exist_ok=True)
        with open(self.image, "wb") as image:
            image.truncate(self.size_mib << 20)
        # Past the cache of the file below: else "cold" would be warm, and everything would be cached twice.
        done = subprocess.run(["losetup", "--find", "--show", "--direct-io=on", str(self.image)], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
        text = done.stdout if done.returncode == 0 else command("losetup", "--find", "--show", self.image)
        return pathlib.Path(text.strip())

    def _zram(self):
        """A device in memory that needs no thread of the kernel, so that a machine in use disturbs it little."""
        number = int(pathlib.Path("/sys/class/zram-control/hot_add").read_text())
        (pathlib.Path("/sys/block") / f"zram{number}" / "disksize").write_text(f"{self.size_mib}M")
        return pathlib.Path(f"/dev/zram{number}")

    def _free_device(self):
        if self.memory:
            (pathlib.Path("/sys/block") / self.device.name / "reset").write_text("1")
            pathlib.Path("/sys/class/zram-control/hot_remove").write_text(self.device.name[4:])
        else:
            command("losetup", "-d", self.device, check=False)

    def _mount(self):
        if self.kind == "tmpfs":
            command("mount", "-t", "tmpfs", "-o", f"size={self.size_mib}m", "tmpfs", self.path)
        else:
            command("mount", "-t", self.kind, "-o", "noatime", self.device, self.path)

    def cool(self):
        """Nothing of this storage stays in memory: it is unmounted and mounted again. Programs, elsewhere, stay cached:
        a replay leaves them out and takes the time they took in the recording."""
        if self.kind == "tmpfs":
            return
        os.sync()
        unmount(self.path)
        self._mount()

    def rehearse(self, folder):
        """Takes and frees the pieces of memory that a run will take: all data read, as much written (and removed before it
        reaches the device). For cool()."""
        os.sync()
        left = read_all(folder)
        with open(self.path / "rehearsal", "wb", buffering=0) as file:
            os.unlink(self.path / "rehearsal")
            part = bytes(10240)
            for _ in range(left // len(part)):
                file.write(part)

    def warm(self, folder):
        """Reads twice everything in `folder`."""
        os.sync()
        for _ in range(2):
            read_all(folder)

    def __exit__(self, *_):
        try:
            if self.limit:
                self.limit.set(False)
        finally:
            unmount(self.path)
            if self.device:
                self._free_device()
            self.image.unlink(missing_ok=True)
            if self.path.exists() and not os.path.ismount(self.path):
                self.path.rmdir()
