// Part of the walker: how far a box can scroll.
/* global scrollerOf -- safe.js */
/* exported scrollPairs */

// How much content lies before and after the visible part of a box on one axis, in pixels. Where
// content starts at the bottom or right (chats, Arabic), positions are negative.
function scrollRange(position, more, backwards) {
  const before = Math.min(more, Math.max(0, Math.round(backwards ? more + position : position)));
  return [before, Math.round(more - before)];
}

const scrolls = (overflow) => overflow !== 'visible' && overflow !== 'hidden' && overflow !== 'clip';

function scrollPairs(element, style) {
  const pairs = [];
  if (!scrolls(style.overflowY) && !scrolls(style.overflowX)) return pairs;
  if (element === scrollerOf(element.ownerDocument)) return pairs;
  const flow = style.display.endsWith('flex') ? style.flexDirection : '';
  const down = element.scrollHeight - element.clientHeight;
  if (scrolls(style.overflowY) && down > 4 && element.clientHeight > 20) {
    const [above, below] = scrollRange(element.scrollTop, down, flow === 'column-reverse');
    pairs.push(`scroll: ${above} px above, ${below} px below`);
  }
  const across = element.scrollWidth - element.clientWidth;
  if (scrolls(style.overflowX) && across > 4 && element.clientWidth > 20) {
    const leftwards = style.writingMode === 'vertical-rl'
      || (style.direction === 'rtl') !== (flow === 'row-reverse');
    const [left, right] = scrollRange(element.scrollLeft, across, leftwards);
    pairs.push(`scroll across: ${left} px left, ${right} px right`);
  }
  return pairs;
}
