"""Observe a page as text with ids, and find the element of an id again.

A walk runs in an isolated world of each frame, which the page cannot detect. An observation costs
one round trip to the browser for the document with its frames of the same origin, and one more for
each level of nested frames of other origins.
"""

from __future__ import annotations

import asyncio
import secrets
import weakref
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error

from web_server.javascript import bundle_script, load_script
from web_server.observe import render
from web_server.observe.isolated_world import ContextGone, IsolatedWorld
from web_server.observe.marks import Box
from web_server.observe.simplify import drop_wrappers, fold_covers
from web_server.observe.target import ElementGone, Target, element_gone
from web_server.observe.walker import MAX_FRAME_LEVELS, Walker, walker_source
from web_server.quoting import unquoted, visible

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, ElementHandle, Frame, Page

_RETRIES = 5
_READ_MS = 2000
_MAX_BOXES = 1000
RECORDER_PARTS = ("page_recorder", "report_limits")

_secrets: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


@dataclass
class Observed:
    """One observation.

    Attributes:
        yaml_body: the lines of the elements, without the lines of the tabs, limited to the
            viewport unless the scope was "page".
        fulltree_body: the same for the whole page; empty unless requested.
        snapshot: the elements as nested objects; empty unless requested.
        title: of the page.
        url: of the page.
        scroll: x, y, above, below, left, right in CSS pixels.
        viewport: width and height in CSS pixels.
        focused: the line of the focused element without states, or an empty string.
        elements: facts by id; empty unless requested.
        incomplete: whether elements are missing because they could not be read.
    """

    yaml_body: str
    fulltree_body: str = ""
    snapshot: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    url: str = ""
    scroll: dict[str, int] = field(default_factory=dict)
    viewport: dict[str, int] = field(default_factory=dict)
    focused: str = ""
    elements: dict[str, Any] = field(default_factory=dict)
    incomplete: bool = False
    messages: list[int] = field(default_factory=list)


class Observer:
    """Observation of one page. Call `attach` once before anything else.

    Args:
        page: of Playwright's async API. Call `prepare_context` on its context first; otherwise
            closed shadow roots and elements that only a listener makes clickable are not found.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._secret = _secrets.get(page.context, "-")
        self._walks: Walker | None = None
        self._last: list[render.Node] = []
        self._prefetched: Target | None = None
        self._background: asyncio.Task[None] | None = None

    @staticmethod
    async def prepare_context(context: BrowserContext) -> None:
        """Install js/recorder/page_recorder.js. Call once, before the first page."""
        secret = _secrets.setdefault(context, "e" + secrets.token_hex(12))
        script = bundle_script("observe", RECORDER_PARTS, SECRET=secret)
        await context.add_init_script(script)

    async def attach(self) -> None:
        """Open the page's debugging session."""
        session = await self._page.context.new_cdp_session(self._page)
        tree = await session.send("Page.getFrameTree")
        main = IsolatedWorld(session, tree["frameTree"]["frame"]["id"], walker_source(self._secret))
        self._walks = Walker(self._page, main)
        self._page.on("framenavigated", self._on_navigated)

    def _on_navigated(self, frame: Frame) -> None:
        if frame == self._page.main_frame:
            self._walker.main.forget()
            self._background = asyncio.ensure_future(self._prepare_document(self._walker.main))

    async def _prepare_document(self, main: IsolatedWorld) -> None:
        """Load the walker into a new document while the caller still waits for the document."""
        try:
            await main.run("() => null")
        except Error:
            pass  # the document was replaced

    @property
    def _walker(self) -> Walker:
        if self._walks is None:
            raise RuntimeError("await Observer.attach() before observing the page")
        return self._walks

    @property
    def main(self) -> IsolatedWorld:
        """The isolated world of the main document."""
        return self._walker.main

    async def observe(
        self,
        *,
        scope: str = "viewport",
        fulltree: bool = False,
        snapshot: bool = False,
        elements: bool = False,
        quiet: bool = False,
        all_options: bool = False,
    ) -> Observed:
        """Observe the page.

        Args:
            scope: "viewport" or "page": the extent of `yaml_body`.
            fulltree: also fill `fulltree_body`.
            snapshot: also fill `snapshot`, for the whole page if that is walked anyway.
            elements: also fill `elements`: role, name, box and states by id.
            quiet: use the observation of `observe_when`: its event arrived, and nothing happened
                since.
            all_options: include all options of long lists.

        Raises:
            ContextGone: the page kept navigating.
        """
        full = fulltree or scope == "page"
        result, nodes = await self._walk(full, quiet, all_options)
        whole = drop_wrappers(render.cut(nodes, viewport_only=False)) if full else []
        shown = whole if scope == "page" else drop_wrappers(render.cut(nodes, viewport_only=True))
        covered = fold_covers(shown)
        if whole and shown is not whole:
            fold_covers(whole)
        self._last = list(render.flatten(shown))
        if fulltree and shown is not whole:
            render.agree(whole, self._last)
        title, scroll = result["title"], result["scroll"]
        return Observed(
            yaml_body=render.render_body(title, scroll, shown, covered),
            fulltree_body=render.render_body(title, scroll, whole, covered) if fulltree else "",
            snapshot=render.to_snapshot(title, whole or shown) if snapshot else {},
            title=visible(title),
            url=result["url"],
            scroll=scroll,
            viewport=result["viewport"],
            focused=next(
                (_line_without_states(n) for n in self._last if "focused: true" in n.states), ""
            ),
            elements={str(n.id): n.to_dict() for n in self._last} if elements else {},
            incomplete=self._walker.incomplete,
            messages=[n.id for n in self._last if render.MESSAGE in n.states],
        )

    async def read_tree(self, all_options: bool = False) -> list[render.Node]:
        """Return the elements of the whole page as trees.

        Args:
            all_options: include all options of long lists.

        Raises:
            ContextGone: the page kept navigating.
        """
        _, nodes = await self._walk(True, False, all_options)
        return drop_wrappers(render.cut(nodes, viewport_only=False))

    async def _walk(
        self, full: bool, quiet: bool, all_options: bool
    ) -> tuple[dict[str, Any], list[render.Node]]:
        """Walk the page, and again after a navigation; see `Walker.walk`."""
        for attempt in range(_RETRIES):
            try:
                result, nodes = await self._walker.walk(full, quiet and not attempt, all_options)
                break
            except ContextGone:
                if attempt == _RETRIES - 1:
                    raise
                await self._settle_navigation()
        render.nest_popups(nodes)
        return result, nodes

    async def _settle_navigation(self) -> None:
        """Wait for the new document."""
        with suppress(Error):  # after the timeout, observe the document as it is
            await self._page.wait_for_load_state("domcontentloaded", timeout=_READ_MS)

    def observe_when(self, event: str, scope: str = "viewport", fulltree: bool = False) -> None:
        """Walk the page when an event of that name reaches the document.

        The next `observe` with `quiet` and the same scope uses the result.
        """
        self._walker.walk_when(event, fulltree or scope == "page")

    def cancel_observe_when(self) -> None:
        """Discard the result of `observe_when`."""
        self._walker.discard_early_walk()

    async def prefetch(self, element_id: int) -> None:
        """Resolve an element early, for the next `resolve`."""
        try:
            self._prefetched = await self._resolve(element_id)
        except ElementGone:
            self._prefetched = None

    def drop_prefetched(self) -> None:
        """Discard the result of `prefetch`."""
        self._prefetched = None

    async def resolve(self, element_id: int) -> Target:
        """Return the current state of an element. Never scrolls.

        Raises:
            ElementGone: the page has no element with this id.
        """
        prefetched, self._prefetched = self._prefetched, None
        if prefetched is not None and prefetched.id == element_id:
            return prefetched
        return await self._resolve(element_id)

    async def _resolve(self, element_id: int) -> Target:
        world, local_id = self._walker.place(element_id)
        try:
            facts = await world.call("resolve", local_id)
            if facts is None:
                raise element_gone(element_id)
            for outer, owner_id in list(world.owners(local_id))[1:]:
                seen = await outer.call("resolveInFrame", owner_id, facts["x"], facts["y"])
                if seen is None:
                    raise element_gone(element_id)
                facts["x"], facts["y"] = seen["x"], seen["y"]
                facts["in_viewport"] = facts["in_viewport"] and seen["in_viewport"]
                facts["covered_by"] = facts["covered_by"] or seen["covered_by"]
            framed = facts.pop("framed")
            frame = await self._frame_of(world, local_id if framed else None)
        except ContextGone:
            raise element_gone(element_id) from None
        return Target(
            id=element_id, **facts, frame=frame, _world=world, _local_id=local_id, _observer=self
        )

    async def usage(self, element_id: int, purpose: str) -> dict[str, Any]:
        """Return whether and how an action applies to an element; see `usage` in js/use/usage.js.

        Args:
            element_id: as an observation showed it.
            purpose: text, toggle, file, list or focus.

        Raises:
            ElementGone: the page has no element with this id.
        """
        world, local_id = self._walker.place(element_id)
        try:
            found = await self._walker.ask(world, "usage", local_id, purpose)
        except ContextGone:
            found = None
        if found is None:
            raise element_gone(element_id)
        return found

    async def focus(self) -> dict[str, Any]:
        """Describe the focused element: `kind` of js/use/usage.js; `id`, `role`, `name` if any."""
        world, found = self._walker.main, {"kind": "none"}
        for _ in range(MAX_FRAME_LEVELS):
            try:
                asked = await self._walker.ask(world, "describeFocus")
            except ContextGone:
                break
            found = asked or found
            inner = self._walker.world_in(world, found) if found["kind"] == "frame" else None
            if inner is None:
                break
            world = inner
        return found

    async def unseen_line(self, element_id: int) -> str:
        """Return the line of an element that the last observation does not list.

        Returns:
            The line; empty if the observation lists the element, or if it left the page.
        """
        if any(node.id == element_id for node in self._last):
            return ""
        try:
            world, local_id = self._walker.place(element_id)
            found = await world.call("elementState", local_id)
        except (ContextGone, ElementGone):
            return ""
        if not found:
            return ""
        states = list(found["states"])
        return render.Node(element_id, found["role"], found["name"], 0, (), states).line()

    def ids_inside(self, element_id: int) -> set[int]:
        """Ids of the elements that the last observation listed below an element."""
        for node in self._last:
            if node.id == element_id:
                return {inner.id for inner in render.flatten(node.children)}
        return set()

    async def readable(self) -> str:
        """The visible content as plain HTML, without scripts and styles."""
        try:
            return str(await self._walker.main.call("readableHtml"))
        except ContextGone:
            await self._settle_navigation()
            return str(await self._walker.main.call("readableHtml"))

    async def layout_tables(self) -> list[int]:
        """Ids of the tables of the main document that structure the page, not data."""
        try:
            found = await self._walker.ask(self._walker.main, "layoutTables")
        except ContextGone:
            found = None
        return list(found["near"]) if found else []

    async def boxes(self) -> list[Box]:
        """Boxes of the interactive elements in the viewport, as of the last observation."""
        return [
            Box(n.id, *n.box)
            for n in self._last
            if n.flags & render.INTERACTIVE and n.in_view and n.box
        ]

    def boxes_in_view(self) -> dict[str, list[int]]:
        """Boxes by id of the elements in the viewport, as of the last observation."""
        seen = [n for n in self._last if n.in_view and n.box][:_MAX_BOXES]
        return {str(n.id): list(n.box) for n in seen}

    async def _frame_of(self, world: IsolatedWorld, local_id: int | None) -> Frame | None:
        """Playwright's frame of an isolated world, or of the same-origin frame with a node."""
        if world.frame is None:
            if world.parent is None:
                world.frame = self._page.main_frame
            else:
                outer = await self._frame_of(world.parent, world.owner_id)
                world.frame = await self._content_frame(world.parent, world.owner_id, outer)
        if local_id is None:
            return world.frame
        frame = world.frame
        for owner_id in await world.call("frameOwners", local_id):
            frame = await self._content_frame(world, owner_id, frame)
        return frame

    async def _content_frame(
        self, world: IsolatedWorld, owner_id: int, frame: Frame | None
    ) -> Frame | None:
        if frame is None:
            return None
        handle = await self.get_handle(world, owner_id, frame)
        if handle is None:
            raise ContextGone("the frame left the page")
        return await handle.content_frame()

    async def get_handle(
        self, world: IsolatedWorld, local_id: int, frame: Frame
    ) -> ElementHandle | None:
        """Return Playwright's handle of an element; None if the element left the page.

        An event with a secret name passes the element from the isolated world to the page's world.
        """
        name = "e" + secrets.token_hex(12)
        receiver = await frame.evaluate_handle(load_script("observe", "receive_node"), name)
        try:
            if not await world.call("sendNode", local_id, name):
                return None
            found = await receiver.get_property("node")
            return found.as_element()
        finally:
            await receiver.dispose()


def _line_without_states(node: render.Node) -> str:
    return f"[{node.id}] {node.role} '{unquoted(node.name)}'"
