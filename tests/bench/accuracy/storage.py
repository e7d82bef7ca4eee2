# SPDX-License-Identifier: MIT
"""Owns the storages of the experiments: file systems on devices of their own, tmpfs, one behind a delay per request, and a limit
on what a device moves or how often.

A storage is a context manager: what it makes (image, device, mounts, limit) is gone afterwards, also on Ctrl-C. What a killed
program left is removed by the next one: `sweep`.
"""

import contextlib
import ctypes
import dataclasses
import errno
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MB = 1_000_000
READ_AHEAD_KIB = 128  # what most devices have; a loop device takes over what the disk below it happens to have


def command(*words, check=True):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}: {done.stdout.strip()}")
    return done.stdout


CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x00020000, 1 << 14, 1 << 18  # <sched.h>, <sys/mount.h>
PR_SET_PDEATHSIG = 1  # <sys/prctl.h>


def own_mounts():
    """This program's mounts become its own. In the machine's they would be copied by every program that makes itself a mount
    namespace; a copy keeps the file system mounted, and then what was unmounted here comes back warm."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0 or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        raise RuntimeError(f"no mount namespace of its own: {os.strerror(ctypes.get_errno())}")


def die_with_parent():
    """For preexec_fn: what is started does not outlive this program, even if that is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_until_free(device):
    """Until nobody has the device mounted: only then nothing of it is in memory."""
    until = time.monotonic() + 10
    while True:
        try:
            os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > until:
                raise RuntimeError(f"{device} is unmounted and still in use: a run on it would not be cold") from error
        time.sleep(0.05)


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


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a storage is: a file system, and what makes it slow. Limits hold each way, for reads and for writes."""

    system: str
    mb_per_s: float | None = None
    iops: int | None = None
    delay_us: int | None = None  # per request; the file system lies below one of slow_fuse.c


BLKIO = pathlib.Path("/sys/fs/cgroup/blkio")


class Limit:
    """Bytes or requests per second of one block device, by the blkio controller (version 1) of control groups.

    A group's limit holds for the I/O that its own tasks submit. It is set for the group of this process, to which jobs
    and replays belong, and for the root group, to which the kernel's writers of dirty pages belong.
    """

    def __init__(self, device, kind):
        self.device = device
        self.most = {"bps": int((kind.mb_per_s or 0) * MB), "iops": kind.iops or 0}
        if not (BLKIO / "blkio.throttle.read_bps_device").exists():
            raise RuntimeError("a limited storage needs control groups of version 1 with the controller blkio at /sys/fs/cgroup/blkio")
        own = "/"
        for line in open("/proc/self/cgroup", encoding="ascii"):
            if ":blkio:" in line:
                own = line.strip().split(":", 2)[2]
        self.groups = sorted({BLKIO, BLKIO / own.lstrip("/")})

    def set(self, on):
        for group in self.groups:
            for way in ("read", "write"):
                for unit, most in self.most.items():
                    if most:
                        (group / f"blkio.throttle.{way}_{unit}_device").write_text(f"{self.device} {most if on else 0}\n")


class Passthrough:
    """slow_fuse.c between a folder and a mount point. As a Limit it is slow only where it is set so: data are placed at once."""

    def __init__(self, program, below, path, delay_us):
        self.words, self.path, self.child = [str(program), str(below), str(path), str(delay_us)], path, None

    def mount(self):
        self.child = subprocess.Popen(self.words, stdout=subprocess.DEVNULL, start_new_session=True, preexec_fn=die_with_parent)
        until = time.monotonic() + 10
        while not os.path.ismount(self.path):
            if self.child.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{' '.join(self.words)}: not mounted")
            time.sleep(0.01)

    def unmount(self):
        unmount(self.path)
        if self.child:
            try:
                self.child.wait(10)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
            self.child = None

    def set(self, on):
        if self.child:
            self.child.send_signal(signal.SIGUSR1 if on else signal.SIGUSR2)


def instance(device):
    """Differs when a device of that name was removed and made anew."""
    try:
        return str(os.stat(f"/sys/block/{device.name}").st_ino)
    except OSError:
        return "none"


def free_device(device):
    """Waits until the last of a killed run has let go of it."""
    if device.name.startswith("zram"):
        if (pathlib.Path("/sys/block") / device.name).exists():
            wait_until_free(device)
            (pathlib.Path("/sys/block") / device.name / "reset").write_text("1")
            pathlib.Path("/sys/class/zram-control/hot_remove").write_text(device.name[4:])
    else:
        command("losetup", "-d", device, check=False)


PREFIX, DEVICES, LOCK = "reprise-accuracy-", "devices", "in-use"


@contextlib.contextmanager
def working_folder(parent):
    """A new folder for images, mounts and data, gone afterwards. Held by a lock, so that `sweep` tells it from one whose program was killed."""
    sweep(parent)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    with open(folder / LOCK, "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def sweep(parent):
    """Removes what killed programs of this kind left below `parent`: mounts, devices, their limits, files."""
    for folder in pathlib.Path(parent).glob(PREFIX + "*"):
        with contextlib.suppress(OSError):
            with open(folder / LOCK, encoding="ascii") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _sweep(folder)


def _sweep(folder):
    print(f"accuracy: removing {folder}, left by a run that was killed", file=sys.stderr)
    mounts = [line.split()[1] for line in pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    for path in sorted((path for path in mounts if path.startswith(f"{folder}/")), key=len, reverse=True):
        unmount(path)
    left = folder / DEVICES
    for line in left.read_text(encoding="ascii").splitlines() if left.exists() else ():
        device, which = pathlib.Path(line.split()[0]), line.split()[1]
        # A number may have been given to somebody else since.
        image = pathlib.Path("/sys/block") / device.name / "loop/backing_file"
        if which != instance(device) or (device.name.startswith("loop") and not (image.exists() and image.read_text().startswith(f"{folder}/"))):
            continue
        Limit((pathlib.Path("/sys/block") / device.name / "dev").read_text().strip(), Kind("", 1, 1)).set(False)
        try:
            free_device(device)
        except (OSError, RuntimeError) as error:  # the next run tries again
            print(f"accuracy: {device} could not be freed: {error}", file=sys.stderr)
            return
    shutil.rmtree(folder, ignore_errors=True)


class Storage:
    """`path` is where it is mounted; `program` is the built slow_fuse.c, for a kind with a delay."""

    def __init__(self, name, kind, folder, memory=False, program=None, size_mib=1536):
        self.name, self.about, self.kind, self.size_mib = name, kind, kind.system, size_mib
        self.folder, self.memory = pathlib.Path(folder), memory
        self.path, self.image = self.folder / "mnt" / name, self.folder / "images" / f"{name}.img"
        self.below = self.folder / "below" / name if kind.delay_us else self.path
        self.fuse = Passthrough(program, self.below, self.path, kind.delay_us) if kind.delay_us else None
        self.device = self.limit = None

    def __enter__(self):
        try:
            for folder in {self.path, self.below}:
                folder.mkdir(parents=True)
            if self.kind != "tmpfs":
                self._make_device()
            self._mount()
            if self.fuse:
                self.limit = self.fuse
            elif self.about.mb_per_s or self.about.iops:
                self.limit = Limit((pathlib.Path("/sys/block") / self.device.name / "dev").read_text().strip(), self.about)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make_device(self):
        self.device = self._zram() if self.memory else self._loop()
        with open(self.folder / DEVICES, "a", encoding="ascii") as left:  # for `sweep`
            left.write(f"{self.device} {instance(self.device)}\n")
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

    def _mount(self):
        if self.kind == "tmpfs":
            command("mount", "-t", "tmpfs", "-o", f"size={self.size_mib}m", "tmpfs", self.path)
        else:
            command("mount", "-t", self.kind, "-o", "noatime", self.device, self.below)
        if self.fuse:
            self.fuse.mount()

    def _unmount(self):
        if self.fuse:
            self.fuse.unmount()
        unmount(self.below)

    def cool(self):
        """Nothing of this storage stays in memory: it is unmounted and mounted again. Programs, elsewhere, stay cached:
        a replay leaves them out and takes the time they took in the recording. With a delay, both layers are."""
        if self.kind == "tmpfs":
            return
        os.sync()
        self._unmount()
        wait_until_free(self.device)
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
            self._unmount()
            if self.device:
                free_device(self.device)
            self.image.unlink(missing_ok=True)
            for folder in {self.path, self.below}:
                if folder.exists() and not os.path.ismount(folder):
                    folder.rmdir()
