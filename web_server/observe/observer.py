"""What a page shows, as text with ids, and back from an id to the element.

One walk per frame in an isolated world: the page cannot see it, and an observation costs one
browser round trip for the document and those of its frames that it may look into, one more per
level of nesting for frames of other origins.
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
from web_server.observe.target import ElementGone, Target, gone
from web_server.observe.walker import MAX_FRAME_LEVELS, Walker, walker_source
from web_server.quoting import unquoted, visible

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, ElementHandle, Frame, Page

__all__ = ["ElementGone", "Observed", "Observer", "Target"]

_RETRIES = 5
_READ_MS = 2000

_secrets: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


@dataclass
class Observed:
    """One observation. Text bodies hold the element lines without the lines of the tabs.

    `yaml_body` is cut to the viewport (or the whole page at scope "page"), `fulltree_body` is
    never cut and empty unless asked for. `scroll` has x, y, above, below, left, right and
    `viewport` width, height, in CSS pixels. `focused` is the line of the element with the focus,
    without states. `incomplete`: elements that could not be read are missing.
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


class Observer:
    """Observation of one page. Call `attach` once before anything else.

    Args:
        page: of Playwright's async API; its context should have gone through `prepare_context`,
            else elements that only a listener makes clickable and closed shadow roots stay unseen.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._secret = _secrets.get(page.context, "-")
        self._walks: Walker | None = None
        self._last: list[render.Node] = []
        self._ahead: Target | None = None
        self._background: asyncio.Task[None] | None = None

    @staticmethod
    async def prepare_context(context: BrowserContext) -> None:
        """Install the notes on listeners and closed shadow roots. Once, before any page opens."""
        secret = _secrets.setdefault(context, "e" + secrets.token_hex(12))
        await context.add_init_script(bundle_script("observe", ("page_recorder",), SECRET=secret))

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
            self._background = asyncio.ensure_future(self._make_ready(self._walker.main))

    async def _make_ready(self, main: IsolatedWorld) -> None:
        """Bring the walker into a new document while that is still waited for."""
        try:
            await main.run("() => null")
        except Error:
            pass  # the document is gone already

    @property
    def _walker(self) -> Walker:
        if self._walks is None:
            raise RuntimeError("Observer.attach() has to be awaited before the page is observed")
        return self._walks

    @property
    def main(self) -> IsolatedWorld:
        """Where the page's own document is looked at."""
        return self._walker.main

    async def observe(
        self,
        *,
        scope: str = "viewport",
        fulltree: bool = False,
        snapshot: bool = False,
        elements: bool = False,
        heard: bool = False,
        every: bool = False,
    ) -> Observed:
        """Look at the page.

        Args:
            scope: "viewport" or "page": how much `yaml_body` shows.
            fulltree: also fill `fulltree_body`.
            snapshot: also fill `snapshot` (of the whole page if that was walked anyway).
            elements: also fill `elements`, by id: role, name, box, states.
            every: all options of all lists, however many.
            heard: the event of `look_when` came, and nothing happened since: what was seen then
                is what the page shows.

        Raises:
            ContextGone: the page kept navigating while it was looked at.
        """
        full = fulltree or scope == "page"
        for attempt in range(_RETRIES):
            try:
                result, nodes = await self._walker.walk(full, heard and not attempt, every)
                break
            except ContextGone:
                if attempt == _RETRIES - 1:
                    raise
                await self._settle_navigation()
        render.nest_popups(nodes)
        whole = render.cut(nodes, viewport_only=False) if full else []
        shown = whole if scope == "page" else render.cut(nodes, viewport_only=True)
        self._last = list(render.flatten(shown))
        if fulltree and shown is not whole:
            render.agree(whole, self._last)
        title, scroll = result["title"], result["scroll"]
        return Observed(
            yaml_body=render.render_body(title, scroll, shown),
            fulltree_body=render.render_body(title, scroll, whole) if fulltree else "",
            snapshot=render.to_snapshot(title, whole or shown) if snapshot else {},
            title=visible(title),
            url=result["url"],
            scroll=scroll,
            viewport=result["viewport"],
            focused=next((_brief(n) for n in self._last if "focused: true" in n.states), ""),
            elements={str(n.id): n.to_dict() for n in self._last} if elements else {},
            incomplete=self._walker.incomplete,
        )

    async def _settle_navigation(self) -> None:
        """A new document is taking over: go on when it is there."""
        with suppress(Error):  # it is looked at as it is
            await self._page.wait_for_load_state("domcontentloaded", timeout=_READ_MS)

    def look_when(self, event: str, scope: str = "viewport", fulltree: bool = False) -> None:
        """Look at the page at the moment when an event of that name comes to the document.

        What is seen then is for the next `observe` of that scope.
        """
        self._walker.walk_when(event, fulltree or scope == "page")

    def forget_look(self) -> None:
        """What `look_when` has seen is of no use any more."""
        self._walker.forget_ahead()

    async def resolve_ahead(self, element_id: int) -> None:
        """Look an element up while something else is waited for, for the next `resolve`."""
        try:
            self._ahead = await self._resolve(element_id)
        except ElementGone:
            self._ahead = None

    def forget_ahead(self) -> None:
        """What was looked up ahead is of no use any more."""
        self._ahead = None

    async def resolve(self, element_id: int) -> Target:
        """The element with that id as it is now. Never scrolls.

        Raises:
            ElementGone: there is none, or none any more.
        """
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.id == element_id:
            return ahead
        return await self._resolve(element_id)

    async def _resolve(self, element_id: int) -> Target:
        world, local_id = self._walker.place(element_id)
        try:
            facts = await world.call("resolve", local_id)
            if facts is None:
                raise gone(element_id)
            for outer, owner_id in list(world.owners(local_id))[1:]:
                seen = await outer.call("resolveInFrame", owner_id, facts["x"], facts["y"])
                if seen is None:
                    raise gone(element_id)
                facts["x"], facts["y"] = seen["x"], seen["y"]
                facts["in_viewport"] = facts["in_viewport"] and seen["in_viewport"]
                facts["covered_by"] = facts["covered_by"] or seen["covered_by"]
            framed = facts.pop("framed")
            frame = await self._frame_of(world, local_id if framed else None)
        except ContextGone:
            raise gone(element_id) from None
        return Target(
            id=element_id, **facts, frame=frame, _realm=world, _local_id=local_id, _observer=self
        )

    async def usage(self, element_id: int, purpose: str) -> dict[str, Any]:
        """What an element can be used for; see `usage` of `observe_usage.js`.

        Args:
            element_id: as an observation showed it.
            purpose: text, toggle, file, list or focus.

        Raises:
            ElementGone: there is none, or none any more.
        """
        world, local_id = self._walker.place(element_id)
        try:
            found = await self._walker.ask(world, "usage", local_id, purpose)
        except ContextGone:
            found = None
        if found is None:
            raise gone(element_id)
        return found

    async def focus(self) -> dict[str, Any]:
        """What has the focus: `kind` as of `focusFacts`, with `id`, `role` and `name` if any."""
        world, found = self._walker.main, {"kind": "none"}
        for _ in range(MAX_FRAME_LEVELS):
            try:
                asked = await self._walker.ask(world, "describeFocus")
            except ContextGone:
                break
            found = asked or found
            inner = self._walker.realm_in(world, found) if found["kind"] == "frame" else None
            if inner is None:
                break
            world = inner
        return found

    def iter_nested(self, element_id: int) -> set[int]:
        """Ids of what the last observation showed inside an element, or in the list it opened."""
        for node in self._last:
            if node.id == element_id:
                return {inner.id for inner in render.flatten(node.children)}
        return set()

    async def readable(self) -> str:
        """What the page shows as plain HTML: no scripts, no styles, nothing that is hidden."""
        try:
            return str(await self._walker.main.call("readableHtml"))
        except ContextGone:
            await self._settle_navigation()
            return str(await self._walker.main.call("readableHtml"))

    async def boxes(self) -> list[Box]:
        """Boxes of the interactive elements that the last observation showed in the viewport."""
        return [
            Box(n.id, *n.box)
            for n in self._last
            if n.flags & render.INTERACTIVE and n.in_view and n.box
        ]

    async def _frame_of(self, world: IsolatedWorld, local_id: int | None) -> Frame | None:
        """The browser library's frame of a realm, or of the same-origin frame that holds a node."""
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
        handle = await self.hand_over(world, owner_id, frame)
        if handle is None:
            raise ContextGone("the frame left the page")
        return await handle.content_frame()

    async def hand_over(
        self, world: IsolatedWorld, local_id: int, frame: Frame
    ) -> ElementHandle | None:
        """A handle of the browser library on a node of ours: passed through an event.

        The page's own world gets the node by an event whose name nobody else knows.
        """
        name = "e" + secrets.token_hex(12)
        waiting = await frame.evaluate_handle(load_script("observe", "receive_node"), name)
        try:
            if not await world.call("sendNode", local_id, name):
                return None
            found = await waiting.get_property("node")
            return found.as_element()
        finally:
            await waiting.dispose()


def _brief(node: render.Node) -> str:
    return f"[{node.id}] {node.role} '{unquoted(node.name)}'"
