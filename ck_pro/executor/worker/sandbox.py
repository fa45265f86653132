"""Puts the layers of isolation around a worker, each on its own; keeps book of what is missing."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

from . import cgroup, kernel, landlock, limits, memory, mounts, seccomp

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def prepare(config: dict[str, Any]) -> None:
    """Compute in the zygote what its forks then have for free."""
    if kernel.LINUX:
        for path in config["copies"]:
            mounts.read_copy(path)
        cgroup.remembered_place()
        memory.bytes_of_a_socket()  # looked up while this is the host's network
        try:
            for inet in (True, False):
                seccomp.assemble(kernel.MACHINE, inet, True)
        except OSError:
            pass


class Sandbox:
    """The layers around one worker. The steps are called in the order in which they are here.

    Args:
        config: of the session; `layers` names those to try.
    """

    def __init__(self, config: dict[str, Any]):
        self._config = config
        self._wanted = set(config["layers"])
        self.active: set[str] = {"process"}
        self.missing: dict[str, str] = {}
        self.own_pids = False
        self.private_proc = False
        self.scratch: tuple[str, ...] = ()
        self.group: cgroup.Group | None = None
        self._own_user = False
        self.own_net = False

    def report(self) -> dict[str, Any]:
        """Give what is active, and what is missing and why."""
        names = self._config["layers_known"]
        return {
            "active": [name for name in names if name in self.active],
            "missing": {
                name: self.missing.get(name, "switched off")
                for name in names
                if name not in self.active
            },
        }

    def _try(self, layer: str, action: Callable[[], Any]) -> bool:
        """Do something for a layer; what fails is noted, and nothing else stops for it."""
        if layer not in self._wanted:
            return False
        if not kernel.LINUX:
            self.missing.setdefault(layer, "Linux only")
            return False
        try:
            action()
        except (OSError, AttributeError) as error:  # AttributeError: a libc without the function
            code = getattr(error, "errno", None)
            why = os.strerror(code) if code else str(error)
            if code == errno.ENOSYS:
                why = "the kernel is too old"
            self.missing.setdefault(layer, why)
            return False
        return True

    # -- in the first process: a control group, and namespaces

    def make_group(self) -> None:
        """Make a control group for the worker."""

        def make() -> None:
            most = self._config["memory_mb"] * limits.MEGABYTE + limits.HEADROOM
            place = cgroup.name_of(os.getpid())
            self.group = cgroup.Group(place, most, limits.MAX_TASKS)

        if self._try("cgroup", make):
            self.active.add("cgroup")

    def enter_namespaces(self) -> None:
        """Leave the namespaces of the host, as far as that is allowed. The next fork is inside."""
        uid, gid = os.getuid(), os.getgid()
        if uid == 0 and "namespaces" in self._wanted:
            os.setgroups([])
        needs_user = bool(self._wanted & {"namespaces", "mounts", "network"})
        if needs_user and self._try_user(uid, gid):
            self._own_user = True
        done = [
            self._try("namespaces", partial(self._leave, flag))
            for flag in (kernel.CLONE_NEWPID, kernel.CLONE_NEWIPC, kernel.CLONE_NEWUTS)
        ]
        self.own_pids = done[0]
        if all(done):
            self.active.add("namespaces")

    def _try_user(self, uid: int, gid: int) -> bool:
        if not kernel.LINUX:
            return False
        try:
            kernel.unshare(kernel.CLONE_NEWUSER)
        except OSError:  # root needs none for the others, and anyone else will be told by them
            return False
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            kernel.write(f"/proc/self/{name}", text)
        return True

    def _leave(self, flag: int) -> None:
        try:
            kernel.unshare(flag)
        except OSError as error:
            if error.errno == errno.EPERM:
                error.errno = None
                error.args = ("unprivileged user namespaces are not allowed on this machine",)
            raise

    # -- in the second process, the first one of its pid namespace: what needs its powers

    def fill_group(self, worker: int) -> None:
        """Move the worker into its control group; the processes that watch it stay outside.

        It takes milliseconds, in which the worker confines itself. The parent hears of a failure.
        """
        if self.group is not None and not self._try("cgroup", partial(self.group.add, worker)):
            self.active.discard("cgroup")

    def look(self) -> dict[str, Any] | None:
        """Give why all must end: the kernel killed a process of the group for its memory."""
        if self.group is None or not self.group.ran_out():
            return None
        return {"why": "memory", "limit": self._config["memory_mb"]}

    def protect(self) -> None:
        """Protect this process from the worker."""
        if not kernel.LINUX:
            return
        for action in (partial(kernel.hide_memory, True), kernel.adopt_orphans):
            try:
                action()
            except OSError:
                pass
        if self.own_pids:
            try:
                socket.sethostname("sandbox")
            except OSError:
                pass

    def arrange(self) -> tuple[dict[str, Any], list[int]]:
        """Arrange a network and mounts, each in a namespace of its own, for the worker to join.

        It makes itself ready in the meantime.

        Returns:
            What the worker must know of it, and descriptors of the namespaces.
        """
        joined: list[tuple[str, int]] = []
        if self._config["network"]:
            self.missing["network"] = "open, as asked for (network=True)"
        elif self._try("network", lambda: joined.append(("network", self._leave_network()))):
            for action in (_loopback_up, limits.limit_tcp):
                with contextlib.suppress(OSError):  # then there is no loopback, or no TCP, either
                    action()
        if self._try("mounts", partial(self._leave, kernel.CLONE_NEWNS)) and self._arrange_mounts():
            joined.append(("mounts", _open_namespace("mnt")))
        self.own_net = "network" in dict(joined)
        told = {
            "join": [layer for layer, _ in joined],
            "missing": self.missing,
        }
        return told, [descriptor for _, descriptor in joined]

    def _leave_network(self) -> int:
        self._leave(kernel.CLONE_NEWNET)
        return _open_namespace("net")

    def _arrange_mounts(self) -> bool:
        """Arrange `/proc` and the file view; False: the worker must not enter this namespace."""
        private = self.own_pids and self._try("mounts", mounts.mount_proc)
        if private:
            try:
                limits.limit_pids()
            except OSError:  # an older kernel; the watchdog counts too
                pass
        elif self.own_pids:
            self._try("mounts", mounts.hide_proc)
        built = self._try("mounts", partial(mounts.build, self._config))
        self.private_proc = private
        self.scratch = mounts.SCRATCH if built else ()
        if built and "mounts" not in self.missing:
            self.active.add("mounts")
        return built

    # -- in the worker, for good

    def renounce(self) -> None:
        """Give up what nothing in this process needs, even before it is confined."""
        if self.group is not None:
            self.group.close()
        if self._try("capabilities", kernel.drop_bounding_set):
            kernel.no_new_privileges()

    def join(self, arranged: dict[str, Any], descriptors: list[int]) -> None:
        """Enter what `arrange` has made."""
        self.missing.update(arranged["missing"])
        for layer, descriptor in zip(arranged["join"], descriptors, strict=True):
            if self._try(layer, partial(kernel.join, descriptor)) and layer not in self.missing:
                self.active.add(layer)
            os.close(descriptor)
        self.own_net = "network" in self.active

    def confine(self) -> None:
        """Give up everything that code does not need."""
        if self._try_anywhere("rlimits", self._set_limits):
            self.active.add("rlimits")
        if kernel.LINUX:
            kernel.die_with_parent()
            kernel.hide_memory(False)  # the watchdog must be able to look
        if self._try("capabilities", kernel.drop_capabilities):
            self.active.add("capabilities")
        if self._wanted & {"landlock", "seccomp", "capabilities"} and kernel.LINUX:
            kernel.no_new_privileges()
        if self._try("landlock", self._landlock):
            self.active.add("landlock")
        network = bool(self._config["network"])
        inet = network or self.own_net
        if self._try("seccomp", lambda: seccomp.install(inet, self.own_pids)):
            self.active.add("seccomp")
            if "network" in self._wanted and not network:
                self.active.add("network")

    def _try_anywhere(self, layer: str, action: Callable[[], None]) -> bool:
        if layer not in self._wanted:
            return False
        try:
            action()
        except (OSError, ValueError) as error:
            self.missing[layer] = str(error)
            return False
        return True

    def _set_limits(self) -> None:
        config = self._config
        limits.set_limits(config["memory_mb"], config["disk_mb"], self._own_user)

    def _landlock(self) -> None:
        config = self._config
        workdir = config["workdir"]
        with_mounts = "mounts" in self.active
        writable = [workdir, *((*mounts.SCRATCH, mounts.PTYS) if with_mounts else ())]
        writable += [f"/dev/{name}" for name in mounts.NODES]
        # in a view of its own, `/etc` is the copies and nothing else
        readable = ["/proc", *config["show"], *(["/etc"] if with_mounts else config["copies"])]
        landlock.restrict(
            readable,
            writable,
            ["/"] if with_mounts else [],
            deny_tcp=not config["network"] and not self.own_net,
        )


def _open_namespace(name: str) -> int:
    return os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sH14x", b"lo", 0)
        answer = fcntl.ioctl(sock, _SIOCGIFFLAGS, request)
        (flags,) = struct.unpack_from("H", answer, 16)
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))
