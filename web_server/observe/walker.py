"""The walk over a page: the document, and the frames of other origins inside it, level by level."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error

from web_server.javascript import bundle_script
from web_server.observe import render
from web_server.observe.isolated_world import ContextGone, IsolatedWorld, find_frame_world

if TYPE_CHECKING:
    from playwright.async_api import Page

log = logging.getLogger(__name__)

PARTS = (
    "safe", "dom", "geometry", "hit_test", "page_records", "tables", "roles", "names", "states",
    "hints", "covers", "scroll_state", "text", "walk", "containers", "offscreen", "interactive",
    "rows", "tags", "frames", "page", "readable_html", "text_search", "action_targets", "usage",
    "field_actions", "pointer_actions", "target",
)  # fmt: skip
MAX_FRAME_LEVELS = 6
_MANY_PLACES = 20_000


def walker_source(secret: str) -> str:
    """Return the script of the walk, which shares its secret with js/notes.js."""
    return bundle_script("observe", PARTS, SECRET=secret)


class Walker:
    """Walks one page, and knows what its ids stand for.

    Args:
        page: the page.
        main: where its document is walked.
    """

    def __init__(self, page: Page, main: IsolatedWorld) -> None:
        self.main = main
        self._page = page
        self._next_id = 3
        self._places: dict[int, tuple[IsolatedWorld, int]] = {}
        self._ahead: asyncio.Task[Any] | None = None
        self._ahead_full = False
        self.incomplete = False
        """Whether the last walk met elements that could not be read."""

    def place(self, element_id: int) -> tuple[IsolatedWorld, int]:
        """Where an element is: the realm that knows it, and its id there."""
        return self._places.get(element_id, (self.main, element_id))

    async def ask(
        self, world: IsolatedWorld, function: str, *arguments: Any
    ) -> dict[str, Any] | None:
        """Call a function of the walker that may number elements; its `id` and `near` page-wide.

        Raises:
            ContextGone: the document was replaced meanwhile.
        """
        main = world is self.main
        found: dict[str, Any] | None
        found = await world.call(function, *arguments, self._next_id if main else 3)
        if found is None:
            return None
        if main:
            self._next_id = max(self._next_id, found["next"])
        elif "id" in found:
            found["id"] = self._page_id(world, found["id"])
            found["near"] = [self._page_id(world, local) for local in found.get("near", ())]
        return found

    def realm_in(self, world: IsolatedWorld, frame: dict[str, Any]) -> IsolatedWorld | None:
        """The realm of a frame element that `ask` told of, if it was walked already."""
        _, local = self._places.get(frame["id"], (world, frame["id"]))
        inner = world.children.get(local)
        return None if inner is None or inner.dead else inner

    def _page_id(self, world: IsolatedWorld, local: int) -> int:
        """The page-wide id of an element of a frame that is walked by itself."""
        if local not in world.page_ids:
            world.page_ids[local] = self._next_id
            self._places[self._next_id] = (world, local)
            self._next_id += 1
        return world.page_ids[local]

    def walk_when(self, event: str, full: bool) -> None:
        """Walk the document at the moment when an event of that name comes to it.

        What it finds is for the next `walk` that is told that the event was heard.
        """
        self.forget_ahead()
        self._ahead_full = full
        self._ahead = asyncio.ensure_future(
            self.main.call("observeWhen", event, self._options(full))
        )

    def forget_ahead(self) -> None:
        """What `walk_when` finds is of no use any more."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.cancel()
            ahead.add_done_callback(_retrieve)

    def _options(self, full: bool) -> dict[str, Any]:
        return {"next": self._next_id, "full": full, "clip": None, "focus": True}

    async def walk(
        self, full: bool, heard: bool = False, every: bool = False
    ) -> tuple[dict[str, Any], list[render.Node]]:
        """The whole page once.

        Args:
            full: what is off screen as well.
            every: all options of all lists.
            heard: the event of `walk_when` came, and nothing happened since.

        Returns:
            what `observe` of `js/page.js` tells of the document, and the trees of its lines.

        Raises:
            ContextGone: the document was replaced meanwhile.
        """
        main = self.main
        first = await self._found_ahead(full) if heard else None
        self.forget_ahead()
        self.incomplete = False
        result = await self._walk_document(main, {**self._options(full), "every": every}, first)
        self._next_id = result["next"]
        nodes = render.parse_records(result["records"])
        if result["frames"]:
            by_id = {n.id: n for n in render.flatten(nodes) if n.flags & render.REMOTE_FRAME}
            pending = [(main, frame, by_id[frame["id"]], (0.0, 0.0)) for frame in result["frames"]]
            await self._walk_frames(pending, full)
        return result, nodes

    async def _found_ahead(self, full: bool) -> dict[str, Any] | None:
        """What `walk_when` found; None if it came to nothing."""
        if self._ahead is None or full != self._ahead_full:
            return None
        try:
            found: dict[str, Any] | None = await self._ahead
        except Error:
            return None
        return found

    async def _walk_document(
        self, world: IsolatedWorld, options: dict[str, Any], first: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """One walk; a second one when it met closed shadow roots that it did not know."""
        result: dict[str, Any] = first or await world.call("observe", options)
        if result["failures"]:
            self.incomplete = True
            log.warning("elements left out of the observation: %s", "; ".join(result["failures"]))
        if result["possibleHosts"]:
            opened = [await world.adopt_closed_root(number) for number in result["possibleHosts"]]
            if any(opened):
                options = {**options, "next": result["next"]}
                result = await world.call("observe", options)
        return result

    async def _walk_frames(
        self,
        pending: list[tuple[IsolatedWorld, dict[str, Any], render.Node, tuple[float, float]]],
        full: bool,
    ) -> None:
        """Walk frames of other origins, level by level, all of a level at once."""
        for _ in range(MAX_FRAME_LEVELS):
            if not pending:
                return
            answers = await asyncio.gather(
                *(self._walk_frame(p, f, full) for p, f, _, _ in pending)
            )
            deeper: list[
                tuple[IsolatedWorld, dict[str, Any], render.Node, tuple[float, float]]
            ] = []
            for (_, frame, owner, base), answer in zip(pending, answers, strict=True):
                if answer is None:
                    continue
                world, result = answer
                origin = (base[0] + frame["x"], base[1] + frame["y"])
                ids = self._number(world, result["records"])
                owner.children = render.parse_records(result["records"], ids=ids, offset=origin)
                inner = {n.id: n for n in render.flatten(owner.children)}
                deeper += [(world, f, inner[ids[f["id"]]], origin) for f in result["frames"]]
            pending = deeper

    async def _walk_frame(
        self, parent: IsolatedWorld, frame: dict[str, Any], full: bool
    ) -> tuple[IsolatedWorld, dict[str, Any]] | None:
        """One frame of another origin; None when it cannot be looked into (it is just leaving)."""
        options = {"next": 3, "full": full, "clip": frame["clip"], "focus": frame["focused"]}
        for _ in range(2):
            world = await find_frame_world(self._page, parent, frame["id"])
            if world is None:
                return None
            try:
                return world, await self._walk_document(world, options)
            except ContextGone:
                continue
        return None

    def _number(self, world: IsolatedWorld, records: str) -> dict[int, int]:
        """Page-wide ids for what a frame walked by itself has numbered on its own."""
        if len(self._places) > _MANY_PLACES:
            self._places = {n: place for n, place in self._places.items() if not place[0].dead}
        for record in records.split("\x1e") if records else ():
            self._page_id(world, int(record.split("\x1f", 2)[1]))
        return world.page_ids


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Nobody waits for it any more: its failure is no news."""
    if not task.cancelled():
        task.exception()
