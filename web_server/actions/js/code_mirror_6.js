// Function file, for the page's own world. Returns the CodeMirror 6 editor that contains an element:
// `text()`, `fixed()` (read-only), `select(start, end)` and `replace(start, end, text)`; null without one.
(element) => {
  const content = element.closest('.cm-content') || element.closest('.cm-editor').querySelector('.cm-content');
  const node = content && (content.cmTile || content.cmView); // the name depends on the version
  const view = node && (node.view || (node.root || node.rootView || {}).view);
  if (!view || !view.state) return null;
  return {
    text: () => view.state.doc.toString(),
    fixed: () => view.state.readOnly || !view.contentDOM.isContentEditable,
    select(start, end) {
      view.focus();
      view.dispatch({ selection: { anchor: start, head: end }, scrollIntoView: true });
    },
    replace: (start, end, text) => view.dispatch(
      { changes: { from: start, to: end, insert: text }, userEvent: 'input' }),
  };
}
