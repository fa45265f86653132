// Function file, for the page's own world. Returns the Monaco editor that contains an element:
// `text()`, `fixed()` (read-only), `select(start, end)` and `replace(start, end, text)`; null if the page
// does not provide the global `monaco`.
(element) => {
  const { monaco } = globalThis;
  const all = monaco && monaco.editor && monaco.editor.getEditors ? monaco.editor.getEditors() : [];
  const editor = all.find((each) => each.getDomNode() && each.getDomNode().contains(element));
  const model = editor && editor.getModel();
  if (!model) return null;
  const LF = 1; // EndOfLinePreference
  const at = (offset) => {
    const lines = model.getValue(LF).slice(0, offset).split('\n');
    return { line: lines.length, column: lines[lines.length - 1].length + 1 };
  };
  const rangeOf = (start, end) => ({
    startLineNumber: at(start).line, startColumn: at(start).column,
    endLineNumber: at(end).line, endColumn: at(end).column,
  });
  return {
    text: () => model.getValue(LF),
    fixed: () => Boolean(editor.getRawOptions().readOnly),
    select(start, end) {
      editor.focus();
      editor.setSelection(rangeOf(start, end));
      editor.revealRange(rangeOf(start, end));
    },
    replace(start, end, text) {
      editor.pushUndoStop();
      editor.executeEdits('keyboard', [{ range: rangeOf(start, end), text, forceMoveMarkers: true }]);
      editor.pushUndoStop();
    },
  };
}
