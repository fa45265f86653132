"""The wire types of the browser server, shared with its clients.

Only pydantic is needed to import this module. Requests are tolerant: any field may be missing or
null where a default makes sense, numbers may come as strings and strings as numbers, unknown
fields are ignored, so that clients written for older servers work unchanged.

Field names are the wire's own (camel case where the old wire has it).
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from web_server.wire_types import (
    Button,
    FileContent,
    Flag,
    FlagOn,
    ImageFormat,
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

FEATURES = ("describeAction", "rules")
"""What /getBrowser says that this server can do, for clients that depend on it."""


class Wire(BaseModel):
    """Base of all wire types: unknown fields are ignored, infinities and NaN refused."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class Viewport(Wire):
    """Size of the page's visible part, in CSS pixels."""

    width: int = Field(default=1280, ge=100, le=4096)
    height: int = Field(default=720, ge=100, le=4096)


class GeoLocation(Wire):
    """Where the browser says it is. Degrees; accuracy in metres."""

    latitude: float = Field(ge=-90, le=90)
    longitude: float = Field(ge=-180, le=180)
    accuracy: float = Field(default=0, ge=0)


class GetBrowser(Wire):
    """/getBrowser: lease a browser session.

    Attributes:
        storageState: cookies and local storage to begin with, as Playwright's `storage_state`.
        geoLocation: see `GeoLocation`; the permission is granted with it.
        tabs: the client follows several tabs; without it a page's pop-ups open in place.
        leaseSeconds: the hard end of the lease, in seconds from now.
        allow, block: rules for this lease, beside those of the server. They only narrow what its
            pages may reach: `allow` makes exceptions from `block`, see `web_server.network.policy`.
    """

    storageState: Mapping = None
    geoLocation: Annotated[GeoLocation | None, BeforeValidator(mapping)] = None
    tabs: Flag = False
    viewport: Annotated[Viewport | None, BeforeValidator(mapping)] = None
    leaseSeconds: LeaseSeconds = None
    allow: TextList = Field(default_factory=list)
    block: TextList = Field(default_factory=list)


class BrowserRequest(Wire):
    """Any request about one leased browser."""

    browserId: Text = ""


class RenewBrowser(BrowserRequest):
    """/renewBrowser: move the hard end of the lease to `leaseSeconds` from now.

    Attributes:
        parked: no client uses the browser until the next request for it. Until then the lease ends
            early if another client finds no free browser.
    """

    leaseSeconds: LeaseSeconds = None
    parked: Flag = False


class PageRequest(BrowserRequest):
    """Any request about one page; a null `pageId` is the current one."""

    pageId: Text = ""


class ObserveOptions(Wire):
    """What an observation carries; the defaults are the old wire's.

    Attributes:
        since: `number` of an earlier observation of the page: also tell what changed since then.
    """

    screenshot: Screenshot = "both"
    imageFormat: ImageFormat = "png"
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
    """A place in the viewport, in CSS pixels from its left top corner."""

    x: float
    y: float


class UploadFile(Wire):
    """A file to upload: its content as base64, so that no path of the server is ever read."""

    name: Text = "file"
    mimeType: Text = "application/octet-stream"
    buffer: FileContent = ""


class PerformAction(PageRequest, ObserveOptions):
    """/performAction: act on the page. Which further fields count depends on `actionName`.

    Attributes:
        actionName: a name of `web_server.actions`, in any case.
        targetId: id of the element, as the last observation gave it (number or text), or its role
            and name: `button 'Save'`, `'Save'`. An exact name comes before a unique part of one.
        targetElementType, targetElementName: hints, never checked against the element.
        actionValue: the old wire's one argument: text, option, direction, URL.
        needEnter: press Enter after `type`.
        keys: for `press`, a chord such as "Control+a" (or several); for `click_at`, `drag_path`,
            `move` and `wheel` the modifiers that are held meanwhile.
        path: points for `drag_path`, in CSS pixels of the viewport; with `targetId` from the left
            top corner of that element.
        files: for `upload`.
        x, y: a point of the viewport (`click_at`, `move`, `drag`, `wheel`, whose default is its
            middle); with `targetId`, for the first two, of that element from its left top corner;
            or how far to scroll (`scroll_in`).
        deltaX, deltaY: how far `wheel` turns, and how far from where it is `drag` drags an
            element, in CSS pixels, right and down.
        text: what to type, find, scroll to, wait for or, for `select_text`, select: a quotation,
            within the element `targetId` if there is one; without a text all of that element.
        values: option labels or values for `select_option`.
        timeout: milliseconds, for `wait` and `wait_for`.
        toId: the element on which a `drag` ends, as in `targetId`.
        expectedTarget, expectedUrl: `target` and `url` of the reply of /describeAction. The action
            is done only if it still reaches them, else answered with 409.
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
    expectedTarget: Text = ""
    expectedUrl: Text = ""


class RoundRequest(PageRequest):
    """/loadScreenshot and /gethtmlcontent: what was stored at `currentRound`."""

    currentRound: Text = ""


class GetFile(Wire):
    """/getFile: one of `downloaded_file_path`."""

    filename: Text = ""


class TabInfo(Wire):
    """One tab of the browser, as the observation lists it."""

    pageId: str
    title: str
    url: str
    current: bool


class Download(Wire):
    """A finished download: path for /getFile, the name the site gave it, size in bytes."""

    path: str
    name: str
    size: int


class Observation(Wire):
    """What a page looks like: the reply of /getAccessibilityTree.

    The first block of fields is the old wire's; none of them is ever null.

    Attributes:
        yaml: one line per tab, then one line per element within scope.
        fulltree: the same without the viewport cut.
        snapshot: the tree as objects `{role, name, children}`.
        nonboxed_screenshot, boxed_screenshot: base64 images without and with set-of-marks.
        downloaded_file_path: paths for /getFile.
        scroll: `{x, y, above, below}` in CSS pixels.
        dialogs: one line per dialog that was answered since the last observation.
        events: one line per thing that happened since the last observation.
        elements: `{id: {role, name, box, ...}}` when asked for.
        pageId: the page that was observed (an action may have moved on to a new tab).
        refused: `{place, private}` if the policy refuses the page: its host:port, and whether that
            is only not public, or blocked; else empty.
        number: of this observation, among those of its page; for `since`.
        delta: how `yaml` differs from the observation `since` (`web_server.observe.page_diff`);
            empty if that observation is unknown, or if `yaml` is hardly longer.
    """

    yaml: str = ""
    fulltree: str = ""
    url: str = ""
    html: str = ""
    snapshot: dict[str, Any] = Field(default_factory=dict)
    nonboxed_screenshot: str = ""
    boxed_screenshot: str = ""
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
    number: int = 0
    delta: str = ""
