"""The walk over a page: its document, then the frames of other origins, level by level."""

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
    "safe", "dom", "geometry", "visibility", "hit_test", "page_records", "tables", "roles",
    "typography", "names", "states", "near", "hints", "colors", "covers", "scroll_state",
    "messages", "text", "walk", "containers", "offscreen", "interactive", "rows", "tags",
    "frames", "page", "readable_fields", "shown_text", "readable_html", "table_rows",
    "editable_text", "text_search", "action_targets", "usage", "reading_uses", "field_actions",
    "pointer_actions", "target",
)  # fmt: skip
MAX_FRAME_LEVELS = 6
_MANY_PLACES = 20_000


def walker_source(secret: str) -> str:
    """Return the script of the walk, which shares its secret with js/recorder/page_recorder.js."""
    return bundle_script("observe", PARTS, SECRET=secret)


class Walker:
    """Walk one page, and map its ids to elements.

    Args:
        page: the page.
        main: the isolated world of its main document.

    Attributes:
        incomplete: whether the last walk skipped elements that could not be read.
    """

    def __init__(self, page: Page, main: IsolatedWorld) -> None:
        self.main = main
        self._page = page
        self._next_id = 3
        self._places: dict[int, tuple[IsolatedWorld, int]] = {}
        self._early: asyncio.Task[Any] | None = None
        self._early_full = False
        self.incomplete = False

    def place(self, element_id: int) -> tuple[IsolatedWorld, int]:
        """The isolated world of an element, and its id there."""
        return self._places.get(element_id, (self.main, element_id))

    async def ask(
        self, world: IsolatedWorld, function: str, *arguments: Any
    ) -> dict[str, Any] | None:
        """Call a function of the walker that may assign ids.

        Returns:
            its result, with page-wide ids in `id` and `near`.

        Raises:
            ContextGone: the document was replaced.
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

    def world_in(self, world: IsolatedWorld, frame: dict[str, Any]) -> IsolatedWorld | None:
        """The isolated world of a frame element that `ask` returned, if it was walked already."""
        _, local = self._places.get(frame["id"], (world, frame["id"]))
        inner = world.children.get(local)
        return None if inner is None or inner.dead else inner

    def _page_id(self, world: IsolatedWorld, local: int) -> int:
        """The page-wide id of an element in a frame of another origin."""
        if local not in world.page_ids:
            world.page_ids[local] = self._next_id
            self._places[self._next_id] = (world, local)
            self._next_id += 1
        return world.page_ids[local]

    def walk_when(self, event: str, full: bool) -> None:
        """Walk the document when an event of that name reaches it, for the next quiet `walk`."""
        self.discard_early_walk()
        self._early_full = full
        self._early = asyncio.ensure_future(
            self.main.call("observeWhen", event, self._options(full))
        )

    def discard_early_walk(self) -> None:
        """Discard the result of `walk_when`."""
        early, self._early = self._early, None
        if early is not None:
            early.cancel()
            early.add_done_callback(_ignore_result)

    def _options(self, full: bool) -> dict[str, Any]:
        return {"next": self._next_id, "full": full, "clip": None, "focus": True}

    async def walk(
        self, full: bool, quiet: bool = False, all_options: bool = False
    ) -> tuple[dict[str, Any], list[render.Node]]:
        """Walk the whole page.

        Args:
            full: include content outside of the viewport.
            quiet: use the result of `walk_when`: its event arrived, and nothing happened since.
            all_options: include all options of long lists.

        Returns:
            the result of `observe` in js/tree/page.js, and the trees of nodes.

        Raises:
            ContextGone: the document was replaced.
        """
        main = self.main
        first = await self._early_walk(full) if quiet else None
        self.discard_early_walk()
        self.incomplete = False
        result = await self._walk_document(
            main, {**self._options(full), "allOptions": all_options}, first
        )
        self._next_id = result["next"]
        nodes = render.parse_records(result["records"])
        if result["frames"]:
            by_id = {n.id: n for n in render.flatten(nodes) if n.flags & render.REMOTE_FRAME}
            pending = [(main, frame, by_id[frame["id"]], (0.0, 0.0)) for frame in result["frames"]]
            await self._walk_frames(pending, full)
        return result, nodes

    async def _early_walk(self, full: bool) -> dict[str, Any] | None:
        """The result of `walk_when`; None if it failed or has another extent."""
        if self._early is None or full != self._early_full:
            return None
        try:
            found: dict[str, Any] | None = await self._early
        except Error:
            return None
        return found

    async def _walk_document(
        self, world: IsolatedWorld, options: dict[str, Any], first: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Walk a document, and again if it has closed shadow roots that were not known."""
        result: dict[str, Any] = first or await world.call("observe", options)
        if result["failures"]:
            self.incomplete = True
            log.warning("elements skipped in the observation: %s", "; ".join(result["failures"]))
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
        """Walk frames of other origins, all frames of a level at once."""
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
                ids = self._page_ids(world, result["records"])
                owner.children = render.parse_records(result["records"], ids=ids, offset=origin)
                inner = {n.id: n for n in render.flatten(owner.children)}
                deeper += [(world, f, inner[ids[f["id"]]], origin) for f in result["frames"]]
            pending = deeper

    async def _walk_frame(
        self, parent: IsolatedWorld, frame: dict[str, Any], full: bool
    ) -> tuple[IsolatedWorld, dict[str, Any]] | None:
        """Walk a frame of another origin; None if it left the page."""
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

    def _page_ids(self, world: IsolatedWorld, records: str) -> dict[int, int]:
        """Map the ids in a frame's records to page-wide ids."""
        if len(self._places) > _MANY_PLACES:
            self._places = {n: place for n, place in self._places.items() if not place[0].dead}
        for record in records.split("\x1e") if records else ():
            self._page_id(world, int(record.split("\x1f", 2)[1]))
        return world.page_ids


def _ignore_result(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception of a cancelled task, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
