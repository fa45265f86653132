"""The layers of isolation around one worker, each independent of the others.

`Sandbox` records which layers are active, and why the others are missing. Three processes use it:
the zygote, which creates it and forks the supervisor; the supervisor; and the worker.
"""

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

Message = tuple[dict[str, Any], list[int]]
"""A message between supervisor and worker: JSON data, and at most one descriptor."""


def drop_groups() -> None:
    """Drop root's supplementary groups, which a user namespace would keep."""
    if os.getuid() == 0:
        with contextlib.suppress(OSError):  # a user namespace may forbid it
            os.setgroups([])


def fill_caches(config: dict[str, Any]) -> None:
    """Compute in the zygote what all its forks need."""
    if kernel.LINUX:
        for path in config["copies"]:
            mounts.read_copy(path)
        cgroup.known_place()
        memory.socket_buffer_bytes()
        with contextlib.suppress(OSError):
            for inet in (True, False):
                seccomp.assemble(kernel.MACHINE, inet, True)


class Sandbox:
    """The layers around one worker. The methods are in the order of the calls.

    Args:
        config: of the session; `layers` names the layers to apply.

    Attributes:
        active: names of the applied layers.
        missing: name of a layer -> the reason why it is missing.
        group: the worker's control group, if it has one.
        own_pids: whether the worker has a pid namespace.
        own_net: whether the worker has a network namespace.
        private_proc: whether `/proc` shows only the pid namespace.
        scratch: private writable folders in memory.
    """

    def __init__(self, config: dict[str, Any]):
        self._config = config
        self._wanted = set(config["layers"])
        self.active: set[str] = {"process"}
        self.missing: dict[str, str] = {}
        self.group: cgroup.Group | None = None
        self.own_pids = self.own_net = self.private_proc = False
        self.scratch: tuple[str, ...] = ()
        self._ids = os.getuid(), os.getgid()  # before a new user namespace hides them
        self._own_user = False
        self._rules: landlock.Rules | None = None

    def report(self) -> dict[str, Any]:
        """Return the active layers, and the missing ones with their reasons."""
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
        """Do something for a layer; return whether it worked, and record the reason if not."""
        if layer not in self._wanted:
            return False
        if not kernel.LINUX:
            self.missing.setdefault(layer, "Linux only")
            return False
        try:
            action()
        except (OSError, AttributeError) as error:  # AttributeError: libc lacks the function
            self.missing.setdefault(layer, _reason(error))
            return False
        return True

    # -- in the zygote

    def create_group(self) -> None:
        """Create a control group for the worker."""

        def create() -> None:
            most = self._config["memory_mb"] * limits.MEGABYTE + limits.HEADROOM
            self.group = cgroup.Group(cgroup.new_place(), most, limits.MAX_TASKS)

        if self._try("cgroup", create):
            self.active.add("cgroup")

    def fork(self) -> int:
        """Fork the supervisor, if possible into a user namespace and a pid namespace."""
        for flags in self._namespaces_at_fork():
            self._own_user = bool(flags & kernel.CLONE_NEWUSER)
            self.own_pids = bool(flags & kernel.CLONE_NEWPID)
            try:
                return kernel.fork(flags)
            except OSError as error:
                if "namespaces" in self._wanted:
                    self.missing["namespaces"] = _reason(_explain(error))
        return kernel.fork()

    def _namespaces_at_fork(self) -> list[int]:
        """Return the combinations of flags to try, the best one first."""
        if not kernel.LINUX or not self._wanted & {"namespaces", "mounts", "network"}:
            return [0]
        user = kernel.CLONE_NEWUSER  # gives an ordinary user the right to create the others
        pids = kernel.CLONE_NEWPID if "namespaces" in self._wanted else 0
        return list(dict.fromkeys([user | pids, pids, user, 0]))

    # -- in the supervisor

    def enter_namespaces(self) -> None:
        """Set up the user namespace, and enter the IPC and UTS namespaces."""
        if self._own_user:
            kernel.hide_memory(False)  # otherwise root owns these files
            uid, gid = self._ids
            kernel.write("/proc/self/setgroups", "deny")
            kernel.write("/proc/self/uid_map", f"{uid} {uid} 1")
            kernel.write("/proc/self/gid_map", f"{gid} {gid} 1")
        done = [
            self._try("namespaces", partial(self._unshare, flag))
            for flag in (kernel.CLONE_NEWIPC, kernel.CLONE_NEWUTS)
        ]
        if self.own_pids and all(done):
            self.active.add("namespaces")
            self.missing.pop("namespaces", None)

    def _unshare(self, flag: int) -> None:
        try:
            kernel.unshare(flag)
        except OSError as error:
            raise _explain(error) from error

    def protect_supervisor(self) -> None:
        """Protect this process from the worker."""
        if not kernel.LINUX:
            return
        for action in (partial(kernel.hide_memory, True), kernel.adopt_orphans):
            with contextlib.suppress(OSError):
                action()
        if self.own_pids:
            with contextlib.suppress(OSError):
                socket.sethostname("sandbox")

    def build_mounts(self) -> Message:
        """Build the worker's file view in a new mount namespace.

        Returns:
            A message for the worker's `join_mounts`.
        """
        namespace = []
        if self._try("mounts", partial(self._unshare, kernel.CLONE_NEWNS)) and self._build_mounts():
            namespace.append(_open_namespace("mnt"))
        return {"missing": self.missing}, namespace

    def _build_mounts(self) -> bool:
        """Return False if the worker must not enter this namespace."""
        private = self.own_pids and self._try("mounts", mounts.mount_proc)
        if private:
            with contextlib.suppress(OSError):  # on an older kernel only the watchdog limits tasks
                limits.limit_pids()
        elif self.own_pids:
            self._try("mounts", mounts.hide_proc)
        built = self._try("mounts", partial(mounts.build, self._config))
        self.private_proc = private
        self.scratch = mounts.SCRATCH if built else ()
        if built and "mounts" not in self.missing:
            self.active.add("mounts")
        return built

    def accept_group_and_network(self, data: dict[str, Any], namespace: list[int]) -> None:
        """Accept the worker's message: whether it is in its group, and its network namespace.

        The supervisor enters that namespace to count the worker's sockets.
        """
        if not data["cgroup"]:
            self.group = None
        for descriptor in namespace:
            self.own_net = self._try("network", partial(kernel.join, descriptor))
            os.close(descriptor)

    def check_group(self) -> dict[str, Any] | None:
        """Return the reason to kill the worker if the kernel killed a process of its group."""
        if self.group is None or not self.group.ran_out():
            return None
        return {"why": "memory", "limit": self._config["memory_mb"]}

    # -- in the worker

    def enter_group(self) -> None:
        """Enter the control group. The supervisor stays outside."""
        if self.group is not None:
            if not self._try("cgroup", self.group.enter):
                self.active.discard("cgroup")
            self.group.close()

    def drop_bounding_set(self) -> None:
        """Drop what the worker does not need even before `confine`."""
        if self._try("capabilities", kernel.drop_bounding_set):
            kernel.no_new_privileges()

    def create_network(self) -> Message:
        """Enter a new network namespace.

        Returns:
            A message for the supervisor's `accept_group_and_network`.
        """
        namespace = []
        if self._config["network"]:
            self.missing["network"] = "open, as requested (network=True)"
        elif self._try("network", partial(self._unshare, kernel.CLONE_NEWNET)):
            for action in (_enable_loopback, limits.limit_tcp):
                with contextlib.suppress(OSError):  # the worker has no loopback device then
                    action()
            self.own_net = True
            self.active.add("network")
            namespace.append(_open_namespace("net"))
        return {"cgroup": "cgroup" in self.active}, namespace

    def prepare_landlock(self) -> None:
        """Add the Landlock rules for files that exist in both mount namespaces."""
        config = self._config

        def prepare() -> None:
            self._rules = landlock.Rules(deny_tcp=not config["network"] and not self.own_net)
            self._rules.allow_reading(*config["show"])
            self._rules.allow_all(config["workdir"], *(f"/dev/{name}" for name in mounts.NODES))

        self._try("landlock", prepare)

    def join_mounts(self, data: dict[str, Any], namespace: list[int]) -> None:
        """Enter the mount namespace of the supervisor's message."""
        self.missing.update(data["missing"])
        for descriptor in namespace:
            joined = self._try("mounts", partial(kernel.join, descriptor))
            if joined and "mounts" not in self.missing:
                self.active.add("mounts")
            os.close(descriptor)

    def confine(self) -> None:
        """Apply the layers after which nothing more can be set up."""
        self._limit()
        if kernel.LINUX:
            kernel.die_with_parent()
            kernel.hide_memory(False)  # the watchdog reads it
        if self._try("capabilities", kernel.drop_capabilities):
            self.active.add("capabilities")
        if self._wanted & {"landlock", "seccomp", "capabilities"} and kernel.LINUX:
            kernel.no_new_privileges()
        self._try("landlock", self._restrict)
        network = bool(self._config["network"])
        inet = network or self.own_net
        private = self.own_net and not network and "mounts" in self.active
        local = bool(self._config.get("local_sockets")) and private
        if self._try("seccomp", lambda: seccomp.install(inet, self.own_pids, local)):
            self.active.add("seccomp")
            if "network" in self._wanted and not network:
                self.active.add("network")

    def _limit(self) -> None:
        """Set rlimits; unlike the other layers, they exist outside of Linux too."""
        if "rlimits" not in self._wanted:
            return
        config = self._config
        try:
            limits.set_limits(config["memory_mb"], config["disk_mb"], self._own_user)
            self.active.add("rlimits")
        except (OSError, ValueError) as error:
            self.missing["rlimits"] = str(error)

    def _restrict(self) -> None:
        if self._rules is None:
            return
        self._rules.allow_reading("/proc")
        if "mounts" in self.active:
            self._rules.allow_all(*mounts.SCRATCH, mounts.PTYS)
            self._rules.allow_reading("/etc")  # this `/etc` holds only the copies
            self._rules.allow_listing("/")
        else:
            self._rules.allow_reading(*self._config["copies"])
        self._rules.restrict()
        self.active.add("landlock")


def _explain(error: OSError) -> OSError:
    if error.errno != errno.EPERM:
        return error
    return OSError(0, "unprivileged user namespaces are not allowed on this machine")


def _reason(error: OSError | AttributeError) -> str:
    code = getattr(error, "errno", None)
    if code == errno.ENOSYS:
        return "the kernel is too old"
    if code:
        return os.strerror(code)
    return str(getattr(error, "strerror", None) or error)


def _open_namespace(name: str) -> int:
    return os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)


def _enable_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sH14x", b"lo", 0)
        answer = fcntl.ioctl(sock, _SIOCGIFFLAGS, request)
        (flags,) = struct.unpack_from("H", answer, 16)
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))
