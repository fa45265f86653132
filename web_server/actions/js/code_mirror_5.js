// Function file, for the page's own world. Returns the CodeMirror 5 editor that contains an element:
// `text()`, `fixed()` (read-only), `select(start, end)` and `replace(start, end, text)`; null without one.
(element) => {
  let box = element;
  while (box && !(box.CodeMirror && box.CodeMirror.getValue)) box = box.parentNode || box.host;
  const editor = box && box.CodeMirror;
  if (!editor) return null;
  const at = (offset) => editor.posFromIndex(offset);
  return {
    text: () => editor.getValue('\n'),
    fixed: () => Boolean(editor.getOption('readOnly')),
    select(start, end) {
      editor.focus();
      editor.setSelection(at(start), at(end));
    },
    replace: (start, end, text) => editor.replaceRange(text, at(start), at(end), '+input'),
  };
}
