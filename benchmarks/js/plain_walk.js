// Function file, for the pages of web.py. Walks over the page once and returns the texts, and the tags
// of the elements in view: the least work of an observation.
() => {
  const lines = [];
  const visit = (node) => {
    if (node.nodeType === 3) {
      const text = node.data.trim();
      if (text) lines.push(text);
      return;
    }
    if (node.nodeType !== 1) return;
    const box = node.getBoundingClientRect();
    if (box.width && box.bottom > 0 && box.top < innerHeight) lines.push(node.tagName);
    for (const child of node.childNodes) visit(child);
  };
  visit(document.body);
  return lines.join('\n');
}
