// Part of settling: scrolls the page, or the box that scrolls most of it.
/* global trees -- changes.js */
/* exported scrollPage */

const SCROLLING_TAGS = 'div, main, section, ul, ol, article, nav, pre, aside, form, fieldset, dialog, textarea';

// Scrolls by shares of the visible size. Returns what moved, 'page' or 'box', or why nothing did:
// 'end' (already there) or 'none' (nothing can scroll).
function scrollPage(dx, dy) {
  const moves = (box) => {
    const before = [box.scrollLeft, box.scrollTop];
    box.scrollBy({ left: dx * box.clientWidth, top: dy * box.clientHeight, behavior: 'instant' });
    return box.scrollLeft !== before[0] || box.scrollTop !== before[1];
  };
  const canScroll = (box) => {
    const style = getComputedStyle(box);
    return (dy && box.scrollHeight > box.clientHeight + 1 && /auto|scroll/.test(style.overflowY))
      || (dx && box.scrollWidth > box.clientWidth + 1 && /auto|scroll/.test(style.overflowX));
  };
  const page = document.scrollingElement || document.documentElement;
  if (moves(page)) return 'page';
  for (let box = elementInMiddle(); box; box = parentInView(box)) {
    if (box !== page && canScroll(box) && moves(box)) return 'box';
  }
  const ownTrees = [...trees].filter((tree) => tree.ownerDocument === document);
  const boxes = [document, ...ownTrees].flatMap((tree) => [...tree.querySelectorAll(SCROLLING_TAGS)])
    .filter((box) => box !== page && canScroll(box))
    .sort((a, b) => b.clientWidth * b.clientHeight - a.clientWidth * a.clientHeight);
  for (const box of boxes.slice(0, 5)) if (moves(box)) return 'box';
  return page.scrollHeight <= page.clientHeight + 1 && !boxes.length ? 'none' : 'end';
}

// The innermost element in the middle of the viewport.
function elementInMiddle() {
  const [x, y] = [innerWidth / 2, innerHeight / 2];
  let hit = document.elementFromPoint(x, y);
  for (let inner = hit; inner;) {
    inner = hit.shadowRoot && hit.shadowRoot.elementFromPoint(x, y);
    if (inner === hit) break;
    hit = inner || hit;
  }
  return hit;
}

function parentInView(element) {
  return element.assignedSlot || element.parentElement || element.getRootNode().host || null;
}
