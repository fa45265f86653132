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


def drop_groups() -> None:
    """Give up the supplementary groups of root, which a user namespace would keep."""
    if os.getuid() == 0:
        with contextlib.suppress(OSError):  # in a user namespace that does not allow it
            os.setgroups([])


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
        self._ids = os.getuid(), os.getgid()  # before a new user namespace hides them
        self._own_user = False
        self.own_net = False
        self._rules: landlock.Rules | None = None

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
            self.missing.setdefault(layer, _reason(error))
            return False
        return True

    # -- in the zygote: a control group, and the fork of the supervisor

    def make_group(self) -> None:
        """Make a control group for the worker."""

        def make() -> None:
            most = self._config["memory_mb"] * limits.MEGABYTE + limits.HEADROOM
            self.group = cgroup.Group(cgroup.new_place(), most, limits.MAX_TASKS)

        if self._try("cgroup", make):
            self.active.add("cgroup")

    def fork(self) -> int:
        """Fork the supervisor, as the first process of new user and pid namespaces if possible."""
        for flags in self._wanted_at_fork():
            self._own_user = bool(flags & kernel.CLONE_NEWUSER)
            self.own_pids = bool(flags & kernel.CLONE_NEWPID)
            try:
                return kernel.fork(flags)
            except OSError as error:
                if "namespaces" in self._wanted:
                    self.missing["namespaces"] = _reason(_clear(error))
        return kernel.fork()

    def _wanted_at_fork(self) -> list[int]:
        if not kernel.LINUX or not self._wanted & {"namespaces", "mounts", "network"}:
            return [0]
        user = kernel.CLONE_NEWUSER  # root can do without; it gives others the powers for the rest
        pids = kernel.CLONE_NEWPID if "namespaces" in self._wanted else 0
        return list(dict.fromkeys([user | pids, pids, user, 0]))

    # -- in the supervisor: what needs its powers

    def enter_namespaces(self) -> None:
        """Complete the user namespace, and enter more namespaces."""
        if self._own_user:
            kernel.hide_memory(False)  # else the files below belong to root
            uid, gid = self._ids
            kernel.write("/proc/self/setgroups", "deny")
            kernel.write("/proc/self/uid_map", f"{uid} {uid} 1")
            kernel.write("/proc/self/gid_map", f"{gid} {gid} 1")
        done = [
            self._try("namespaces", partial(self._leave, flag))
            for flag in (kernel.CLONE_NEWIPC, kernel.CLONE_NEWUTS)
        ]
        if self.own_pids and all(done):
            self.active.add("namespaces")
            self.missing.pop("namespaces", None)

    def _leave(self, flag: int) -> None:
        try:
            kernel.unshare(flag)
        except OSError as error:
            raise _clear(error) from error

    def follow(self, message: dict[str, Any], descriptors: list[int]) -> None:
        """Enter the worker's network namespace, so that its sockets can be counted."""
        if not message["cgroup"]:
            self.group = None
        for descriptor in descriptors:
            self.own_net = self._try("network", partial(kernel.join, descriptor))
            os.close(descriptor)

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

    def arrange_mounts(self) -> tuple[dict[str, Any], list[int]]:
        """Build the worker's file view in a mount namespace for it to join.

        Returns:
            A message for `join`, and the descriptor of the namespace.
        """
        joined = []
        if self._try("mounts", partial(self._leave, kernel.CLONE_NEWNS)) and self._arrange_mounts():
            joined.append(_open_namespace("mnt"))
        return {"missing": self.missing}, joined

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

    def enter_group(self) -> None:
        """Enter the control group. The supervisor stays outside."""
        if self.group is not None:
            if not self._try("cgroup", self.group.enter):
                self.active.discard("cgroup")
            self.group.close()

    def renounce(self) -> None:
        """Give up what nothing in this process needs, even before it is confined."""
        if self._try("capabilities", kernel.drop_bounding_set):
            kernel.no_new_privileges()

    def leave_network(self) -> tuple[dict[str, Any], list[int]]:
        """Enter a network namespace.

        Returns:
            A message for `follow`, and the descriptor of the namespace.
        """
        entered = []
        if self._config["network"]:
            self.missing["network"] = "open, as asked for (network=True)"
        elif self._try("network", partial(self._leave, kernel.CLONE_NEWNET)):
            for action in (_loopback_up, limits.limit_tcp):
                with contextlib.suppress(OSError):  # then there is no loopback, or no TCP, either
                    action()
            self.own_net = True
            self.active.add("network")
            entered.append(_open_namespace("net"))
        return {"cgroup": "cgroup" in self.active}, entered

    def prepare_landlock(self) -> None:
        """Make rules for the files that are the same in any mount namespace."""
        config = self._config

        def make() -> None:
            self._rules = landlock.Rules(deny_tcp=not config["network"] and not self.own_net)
            self._rules.allow_reading(*config["show"])
            self._rules.allow_all(config["workdir"], *(f"/dev/{name}" for name in mounts.NODES))

        self._try("landlock", make)

    def join(self, arranged: dict[str, Any], descriptors: list[int]) -> None:
        """Enter the mount namespace from `arrange_mounts`."""
        self.missing.update(arranged["missing"])
        for descriptor in descriptors:
            if self._try("mounts", partial(kernel.join, descriptor)):
                self.active.add("mounts")
            os.close(descriptor)
        if "mounts" in self.missing:
            self.active.discard("mounts")

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
        self._try("landlock", self._restrict)
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

    def _restrict(self) -> None:
        if self._rules is None:
            return
        self._rules.allow_reading("/proc")
        if "mounts" in self.active:
            self._rules.allow_all(*mounts.SCRATCH, mounts.PTYS)
            self._rules.allow_reading("/etc")  # the copies and nothing else
            self._rules.allow_listing("/")
        else:
            self._rules.allow_reading(*self._config["copies"])
        self._rules.restrict()
        self.active.add("landlock")


def _clear(error: OSError) -> OSError:
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


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sH14x", b"lo", 0)
        answer = fcntl.ioctl(sock, _SIOCGIFFLAGS, request)
        (flags,) = struct.unpack_from("H", answer, 16)
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))
