// Function file, for the page's own world. Returns the Ace editor that contains an element:
// `text()`, `fixed()` (read-only), `select(start, end)` and `replace(start, end, text)`; null without one.
(element) => {
  const box = element.closest('.ace_editor');
  const editor = box && box.env && box.env.editor;
  if (!editor) return null;
  const text = () => editor.session.getDocument().getAllLines().join('\n');
  const at = (offset) => {
    const lines = text().slice(0, offset).split('\n');
    return { row: lines.length - 1, column: lines[lines.length - 1].length };
  };
  return {
    text,
    fixed: () => editor.getReadOnly(),
    select(start, end) {
      editor.focus();
      editor.selection.setRange({ start: at(start), end: at(end) });
    },
    replace: (start, end, words) => editor.session.replace({ start: at(start), end: at(end) }, words),
  };
}
