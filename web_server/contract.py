"""The wire types of the browser server, shared with its clients.

This module needs only pydantic. Requests are tolerant, so that clients of older servers work
unchanged: fields with a default may be missing or null, numbers may be strings and strings numbers,
and unknown fields are ignored. Field names are those of the wire, some of them in camel case.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from web_server.wire_types import (
    Button,
    FileContent,
    Flag,
    FlagOn,
    HoldTime,
    ImageFormat,
    ImageSide,
    LeaseSeconds,
    Mapping,
    Milliseconds,
    Number,
    ObservationNumber,
    Scope,
    Screenshot,
    Text,
    TextList,
    items,
    mapping,
)

FEATURES = ("describeAction", "rules", "view", "secrets", "pictures", "stepPictures")
"""Features that /getBrowser reports, for clients that depend on them."""


def view_path(token: str, browser_id: str) -> str:
    """Return the path of the page on which a person sees a leased browser and acts in it.

    Args:
        token: bearer token of the server; "" for none.
        browser_id: the browser. The path does not disclose it.
    """
    key = hmac.new(token.encode(), f"view:{browser_id}".encode(), hashlib.sha256).hexdigest()
    return f"view/{browser_id[:8]}/{key[:40]}"


class Wire(BaseModel):
    """Base of all wire types: unknown fields are ignored, infinities and NaN refused."""

    # the validators are built on first use: most commands that import the types need few of them
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, defer_build=True)


class Viewport(Wire):
    """Size of the viewport, in CSS pixels."""

    width: int = Field(default=1280, ge=100, le=4096)
    height: int = Field(default=720, ge=100, le=4096)


class GeoLocation(Wire):
    """The location that the browser reports. Degrees; accuracy in metres."""

    latitude: float = Field(ge=-90, le=90)
    longitude: float = Field(ge=-180, le=180)
    accuracy: float = Field(default=0, ge=0)


class SiteSecret(Wire):
    """A text that the server types in place of `{{secret:NAME}}`, and masks in all replies.

    Attributes:
        value: the text.
        domains: where it may be typed, see `web_server.session.secret_book.is_allowed`.
    """

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    value: str = Field(min_length=4, max_length=10_000)
    domains: Annotated[list[str], Field(min_length=1, max_length=100)]


class GetBrowser(Wire):
    """/getBrowser: lease a browser session.

    Attributes:
        storageState: initial cookies and local storage, as Playwright's `storage_state`.
        geoLocation: see `GeoLocation`; pages get the permission to read it.
        tabs: the client follows several tabs; otherwise pop-ups open in place.
        leaseSeconds: the hard end of the lease, in seconds from now.
        allow, block: rules for this lease, in addition to the server's. They only narrow what its
            pages may reach: `allow` makes exceptions to `block`, see `web_server.network.policy`.
        secrets: texts by name that `type` and `type_text` fill in for `{{secret:NAME}}`.
    """

    storageState: Mapping = None
    geoLocation: Annotated[GeoLocation | None, BeforeValidator(mapping)] = None
    tabs: Flag = False
    viewport: Annotated[Viewport | None, BeforeValidator(mapping)] = None
    leaseSeconds: LeaseSeconds = None
    allow: TextList = Field(default_factory=list)
    block: TextList = Field(default_factory=list)
    secrets: Annotated[dict[str, SiteSecret], BeforeValidator(lambda v: v or {})] = Field(
        default_factory=dict, max_length=100
    )


class BrowserRequest(Wire):
    """Any request about one leased browser."""

    browserId: Text = ""


class RenewBrowser(BrowserRequest):
    """/renewBrowser: move the hard end of the lease to `leaseSeconds` from now.

    Attributes:
        parked: the client does not use the browser until its next request. Until then, the lease
            ends early if another client finds no free browser.
    """

    leaseSeconds: LeaseSeconds = None
    parked: Flag = False


class PageRequest(BrowserRequest):
    """Any request about one page; a null `pageId` is the current one."""

    pageId: Text = ""


class Region(Wire):
    """A part of the viewport, in CSS pixels; `x` and `y` are its top left corner."""

    x: float
    y: float
    width: float = Field(gt=0)
    height: float = Field(gt=0)


class ObserveOptions(Wire):
    """The parts of an observation. The defaults are those of the old wire.

    Attributes:
        imageMax: limit for the longer side of screenshots, in pixels; larger ones are scaled down.
        region: screenshots show only this part, enlarged to `imageMax` or four times.
        steady: take screenshots until two in a row are equal, for a limited time.
        since: `number` of an earlier observation of the page, for `delta`.
    """

    screenshot: Screenshot = "both"
    imageFormat: ImageFormat = "png"
    imageMax: ImageSide = None
    region: Annotated[Region | None, BeforeValidator(mapping)] = None
    steady: Flag = False
    html: FlagOn = True
    fulltree: FlagOn = True
    snapshot: FlagOn = True
    elements: Flag = False
    scope: Scope = "viewport"
    currentRound: Text = ""
    since: ObservationNumber = None


class OpenPage(BrowserRequest, ObserveOptions):
    """/openPage: a new page at `url`. `observe` adds the observation to the reply."""

    url: Text = ""
    observe: Flag = False


class GotoUrl(PageRequest, ObserveOptions):
    """/gotoUrl: navigate the page to `targetUrl`."""

    targetUrl: Text = ""
    observe: Flag = False


class GetAccessibilityTree(PageRequest, ObserveOptions):
    """/getAccessibilityTree: observe the page."""


class Point(Wire):
    """A point of the viewport, in CSS pixels from its top left corner."""

    x: float
    y: float


class UploadFile(Wire):
    """A file to upload, with its content as base64: the server reads no path of a client."""

    name: Text = "file"
    mimeType: Text = "application/octet-stream"
    buffer: FileContent = ""


class PerformAction(PageRequest, ObserveOptions):
    """/performAction: act on the page. `actionName` decides which further fields are used.

    Attributes:
        actionName: the name of an action of `web_server.actions`, in any case.
        targetId: id of the element in the last observation, as a number or text, or its role and
            name: `button 'Save'`, `'Save'`. An exact name has priority over a unique part of one.
        targetElementType, targetElementName: hints, never checked against the element.
        actionValue: the single argument of the old wire: text, option, direction, URL.
        needEnter: press Enter after `type`.
        keys: for `press`, a chord such as "Control+a", or several; for actions with the mouse, the
            modifiers to hold.
        path: points for `drag_path`, in CSS pixels of the viewport; with `targetId`, from the top
            left corner of that element.
        files: for `upload`.
        x, y: a point of the viewport for `click_at`, `move`, `drag` and `wheel` (default: its
            middle); with `targetId`, for the first two, from the top left corner of that element;
            for `scroll_in`, how far to scroll.
        deltaX, deltaY: how far to turn the `wheel`, or to `drag` the element, in CSS pixels, right
            and down.
        text: what to type, find, scroll to or wait for; for `edit`, what replaces `actionValue`;
            for `select_text`, a quotation, within the element `targetId` if given; without a text,
            all text of that element.
        values: option labels or values for `select_option`.
        timeout: milliseconds, for `wait` and `wait_for`.
        hold: milliseconds for which `click_at` holds the button, or `press` its last chord.
        toId: the element on which a `drag` ends, as in `targetId`.
        role, limit: for `find`: the role of the elements, and how many lines to return (30).
        start: for `table`: the first row to return, from 0; null for all rows.
        links: for `read`: whether to include the addresses of links.
        method, headers: for `fetch`, whose body is `text`.
        expectedTarget, expectedUrl: `target` and `url` of a reply of /describeAction. If the action
            no longer reaches them, it is not done, and the status is 409.
    """

    actionName: Text = ""
    targetId: Text = ""
    targetElementType: Any = None
    targetElementName: Any = None
    actionValue: Text = ""
    needEnter: Flag = False
    observe: Flag = False
    keys: TextList = Field(default_factory=list)
    path: Annotated[list[Point], BeforeValidator(items), Field(max_length=1000)] = Field(
        default_factory=list
    )
    files: Annotated[list[UploadFile | str], BeforeValidator(items), Field(max_length=50)] = Field(
        default_factory=list
    )
    x: Number = None
    y: Number = None
    deltaX: Number = None
    deltaY: Number = None
    toId: Text = ""
    button: Button = "left"
    text: Text = ""
    values: TextList = Field(default_factory=list)
    timeout: Milliseconds = None
    hold: HoldTime = None
    role: Text = ""
    limit: Number = None
    start: Number = None
    links: FlagOn = True
    method: Text = ""
    headers: Mapping = None
    expectedTarget: Text = ""
    expectedUrl: Text = ""


class StepPicture(Wire):
    """The reply of /takePicture: a small picture of the viewport, for viewers of a run.

    Boxes are `[x, y, width, height]` in CSS pixels of the viewport.

    Attributes:
        image: base64 WebP.
        width, height: of the viewport in CSS pixels. The picture may have fewer pixels.
        url: of the page.
        elements: boxes by id of the elements in the viewport, as of the last observation.
        targets: of the action in the request, in order: boxes of elements, also out of view, and
            points as boxes without size. Empty if it has none, or if they are missing.
    """

    image: str = ""
    width: int = 0
    height: int = 0
    url: str = ""
    elements: dict[str, list[int]] = Field(default_factory=dict)
    targets: list[list[int]] = Field(default_factory=list)


class ViewInput(Wire):
    """/view/.../input: what a person did on the page that shows a browser.

    Attributes:
        kind: "click", "wheel", "type" or "press".
        x, y: point of the viewport, in CSS pixels.
        deltaY: how far the wheel was turned, in CSS pixels.
        text: the text, or the key ("Enter", "Control+a").
    """

    kind: Text = ""
    x: Number = None
    y: Number = None
    deltaY: Number = None
    text: Text = ""


class RoundRequest(PageRequest):
    """/loadScreenshot and /gethtmlcontent: return what was stored at `currentRound`."""

    currentRound: Text = ""


class GetFile(Wire):
    """/getFile: one of `downloaded_file_path`."""

    filename: Text = ""


class TabInfo(Wire):
    """A tab of the browser in an observation."""

    pageId: str
    title: str
    url: str
    current: bool


class Download(Wire):
    """A complete download: its path for /getFile, the site's name for it, its size in bytes."""

    path: str
    name: str
    size: int


class Observation(Wire):
    """An observation of a page: the reply of /getAccessibilityTree.

    The first block of fields is that of the old wire; none of them is ever null.

    Attributes:
        yaml: one line per tab, then one line per element in scope.
        fulltree: the same for the whole page.
        snapshot: the tree as objects `{role, name, children}`.
        nonboxed_screenshot, boxed_screenshot: base64 images without and with marks.
        imageScale: pixels of these images per CSS pixel.
        pointer: `[x, y]` of the mouse in CSS pixels of the viewport; empty if unknown.
        downloaded_file_path: paths for /getFile.
        scroll: `{x, y, above, below}` in CSS pixels.
        dialogs: one line per dialog that was answered since the last observation.
        events: one line per event since the last observation.
        elements: `{id: {role, name, box, ...}}` if requested.
        messages: ids of texts that report something to the user: alerts, errors, toasts.
        pageId: the observed page. An action may have opened a new tab.
        refused: `{place, private}` if the policy refuses the page: its host:port, and whether the
            reason is only that its address is private; else empty.
        failure: why the last navigation opened no page, or the page's HTTP error; else empty.
        number: of this observation among those of its page, for `since`.
        delta: the difference between `yaml` and the observation `since`
            (`web_server.observe.page_diff`); empty if that observation is unknown, or if `yaml` is
            hardly longer.
    """

    yaml: str = ""
    fulltree: str = ""
    url: str = ""
    html: str = ""
    snapshot: dict[str, Any] = Field(default_factory=dict)
    nonboxed_screenshot: str = ""
    boxed_screenshot: str = ""
    imageScale: float = 1.0
    pointer: list[float] = Field(default_factory=list)
    downloaded_file_path: list[str] = Field(default_factory=list)
    title: str = ""
    pageId: str = ""
    tabs: list[TabInfo] = Field(default_factory=list)
    viewport: dict[str, Any] = Field(default_factory=dict)
    scroll: dict[str, Any] = Field(default_factory=dict)
    focused: str = ""
    dialogs: list[str] = Field(default_factory=list)
    events: list[str] = Field(default_factory=list)
    downloads: list[Download] = Field(default_factory=list)
    elements: dict[str, Any] = Field(default_factory=dict)
    refused: dict[str, Any] = Field(default_factory=dict)
    failure: str = ""
    messages: list[int] = Field(default_factory=list)
    number: int = 0
    delta: str = ""
