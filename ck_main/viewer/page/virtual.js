// Which rows of a long list are in view: rows of one height, drawn with a margin on both sides.
import { useEffect, useLayoutEffect, useRef, useState } from '/static/ui.js';

const MARGIN = 6; // rows drawn above and below those in view
const BLOCK = 4; // rows that come and go together

/** {ref, start, end, before, after, show(index)} for a scrolling element with `count` rows of `height` pixels. */
export function useRows(count, height, headroom = 0) {
  const ref = useRef(null);
  const [range, setRange] = useState({ start: 0, end: 40 });
  const update = () => {
    const box = ref.current;
    if (!box) return;
    const block = (row) => Math.floor(row / BLOCK) * BLOCK;
    const first = Math.max(0, block((box.scrollTop - headroom) / height - MARGIN));
    const last = Math.min(count, block((box.scrollTop + box.clientHeight) / height + MARGIN + BLOCK));
    setRange((now) => (now.start === first && now.end === last ? now : { start: first, end: last }));
  };
  useLayoutEffect(update, [count, height]);
  useEffect(() => {
    const box = ref.current;
    let pending = 0;
    const later = () => {
      if (!pending) pending = requestAnimationFrame(() => { pending = 0; update(); });
    };
    box.addEventListener('scroll', later, { passive: true });
    const observer = new ResizeObserver(later);
    observer.observe(box);
    return () => {
      box.removeEventListener('scroll', later);
      observer.disconnect();
      cancelAnimationFrame(pending);
    };
  }, [count, height]);
  const show = (index) => {
    const box = ref.current;
    if (!box || index < 0) return;
    const top = index * height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + height + headroom > box.scrollTop + box.clientHeight) {
      box.scrollTop = top + height + headroom - box.clientHeight;
    }
    update();
  };
  const start = Math.min(range.start, Math.max(0, count - 1));
  const end = Math.min(range.end, count);
  return { ref, start, end, before: start * height, after: Math.max(0, (count - end) * height), show };
}
