"""Isolated worlds, in which the walker runs: one per document that is walked separately."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Frame, Page

_WORLD = "observer"
# Messages of the debugging protocol after a document and its worlds were destroyed.
_GONE = (
    "Cannot find context",
    "Execution context was destroyed",
    "Inspected target navigated or closed",
    "No frame for given id",
    "Cannot find object",
    "Could not find object",
)
# The process of a frame may end before the page; the page's own session reports the page's end.
_CLOSED = "has been closed"


class ContextGone(Error):
    """The document was replaced during a call."""


class IsolatedWorld:
    """The walker in a document and in the documents of the same origin inside it.

    The world of a frame ends with its document, because ids start again in the next one. The world
    of the main frame continues, and so do its ids.

    Args:
        session: the debugging session of the document's process.
        frame_id: the protocol's id of the document's frame.
        source: the script of the walker.
        parent: the world with the frame element; None for the main frame.
        owner_id: the id of the frame element in `parent`.

    Attributes:
        frame: Playwright's frame, once it is known.
        page_ids: page-wide ids by the ids of this world; empty for the main frame.
        children: the worlds of inner frames by the id of the frame element.
        dead: whether the frame shows another document now.
    """

    def __init__(
        self,
        session: CDPSession,
        frame_id: str,
        source: str,
        parent: IsolatedWorld | None = None,
        owner_id: int = 0,
    ) -> None:
        self.session = session
        self.frame_id = frame_id
        self.source = source
        self.parent = parent
        self.owner_id = owner_id
        self.frame: Frame | None = None
        self.page_ids: dict[int, int] = {}
        self.children: dict[int, IsolatedWorld] = {}
        self.dead = False
        self._context: int | None = None
        self._document: int | None = None
        self._opening = asyncio.Lock()

    def end(self) -> None:
        """End this world and those of inner frames, after the document was replaced."""
        self.dead = self.parent is not None
        self._context = None
        for child in self.children.values():
            child.end()
        self.children.clear()

    def forget(self) -> None:
        """Look the context up again at the next call: the document may have been replaced."""
        self._context = None

    def owners(self, local_id: int) -> Iterator[tuple[IsolatedWorld, int]]:
        """Yield a node of this world, then the frame elements around it, outwards."""
        world: IsolatedWorld | None = self
        while world is not None:
            yield world, local_id
            local_id = world.owner_id
            world = world.parent

    async def call(self, method: str, *arguments: Any) -> Any:
        """Call a function of the walker and return its result.

        Raises:
            ContextGone: the document was replaced.
        """
        return await self.run(f"(...args) => ckObserver.{method}(...args)", *arguments)

    async def run(self, function: str, *arguments: Any) -> Any:
        """Run a JavaScript function next to the walker: one round trip, three in a new document."""
        if self.dead:
            raise ContextGone("the frame shows another document now")
        if self._context is None:
            async with self._opening:
                if self._context is None:
                    await self._open()
        return await self._evaluate(function, arguments)

    async def _open(self) -> None:
        """Load the walker into the current document."""
        world = await self._send(
            "Page.createIsolatedWorld", {"frameId": self.frame_id, "worldName": _WORLD}
        )
        context = int(world["executionContextId"])
        if self._document not in (None, context):
            for child in self.children.values():
                child.end()
            self.children.clear()
        install = f"() => {{ if (!globalThis.ckObserver) {self.source} }}"
        await self._evaluate(install, (), context)
        self._document = self._context = context

    async def _evaluate(
        self, function: str, arguments: tuple[Any, ...], context: int | None = None
    ) -> Any:
        answer = await self._send(
            "Runtime.callFunctionOn",
            {
                "functionDeclaration": function,
                "executionContextId": context or self._context,
                "arguments": [{"value": argument} for argument in arguments],
                "returnByValue": True,
                "awaitPromise": True,
            },
        )
        if failure := answer.get("exceptionDetails"):
            text = failure.get("exception", {}).get("description") or failure.get("text", "")
            if "ckObserver is not defined" in text:
                self.end()
                raise ContextGone(text)
            raise Error(f"The page could not be observed: {text}")
        return answer["result"].get("value")

    async def _send(self, method: str, parameters: dict[str, Any]) -> Any:
        try:
            return await self.session.send(method, parameters)
        except Error as error:
            closed = self.parent is not None and _CLOSED in error.message
            if closed or any(sign in error.message for sign in _GONE):
                self.end()
                raise ContextGone(error.message) from error
            raise

    async def _describe(self, local_id: int, depth: int) -> dict[str, Any] | None:
        """Describe a node by the debugging protocol; None if it left the page."""
        answer = await self._send(
            "Runtime.callFunctionOn",
            {
                "functionDeclaration": "(id) => ckObserver.elementOf(id)",
                "executionContextId": self._context,
                "arguments": [{"value": local_id}],
            },
        )
        object_id = answer["result"].get("objectId")
        if object_id is None:
            return None
        described = await self._send(
            "DOM.describeNode", {"objectId": object_id, "depth": depth, "pierce": depth > 0}
        )
        await self._send("Runtime.releaseObject", {"objectId": object_id})
        node: dict[str, Any] = described["node"]
        return node

    async def frame_id_of(self, local_id: int) -> str | None:
        """The protocol's frame id of a frame element."""
        found = (await self._describe(local_id, 0) or {}).get("frameId")
        return str(found) if found else None

    async def adopt_closed_root(self, local_id: int) -> bool:
        """Give the walker access to the closed shadow root of an element, if it has one."""
        node = await self._describe(local_id, 1) or {}
        for root in node.get("shadowRoots", ()):
            if root.get("shadowRootType") in ("closed", "user-agent"):
                found = await self._send(
                    "DOM.resolveNode",
                    {
                        "backendNodeId": root["backendNodeId"],
                        "executionContextId": self._context,
                    },
                )
                object_id = found["object"]["objectId"]
                await self._send(
                    "Runtime.callFunctionOn",
                    {
                        "functionDeclaration": "function () { ckObserver.adopt(this); }",
                        "objectId": object_id,
                    },
                )
                await self._send("Runtime.releaseObject", {"objectId": object_id})
                return True
        return False


async def find_frame_world(
    page: Page, parent: IsolatedWorld, owner_id: int
) -> IsolatedWorld | None:
    """Return the world of the frame of another origin that a frame element shows.

    It is cached in `parent.children`. Returns None if the frame left the page.
    """
    known = parent.children.get(owner_id)
    if known is not None and not known.dead:
        return known
    frame_id = await parent.frame_id_of(owner_id)
    if frame_id is None:
        return None
    world = IsolatedWorld(parent.session, frame_id, parent.source, parent, owner_id)
    try:
        await world.run("() => 0")
    except ContextGone:
        session = await _session_of(page, frame_id)
        if session is None:
            return None
        world = IsolatedWorld(session, frame_id, parent.source, parent, owner_id)
    parent.children[owner_id] = world
    return world


async def _session_of(page: Page, frame_id: str) -> CDPSession | None:
    """A debugging session of the process that runs a frame of another site."""
    for frame in page.frames:
        if frame == page.main_frame:
            continue
        try:
            session = await page.context.new_cdp_session(frame)
        except Error:
            continue  # it shares the process of its parent
        tree = await session.send("Page.getFrameTree")
        if tree["frameTree"]["frame"]["id"] == frame_id:
            return session
        await session.detach()
    return None
