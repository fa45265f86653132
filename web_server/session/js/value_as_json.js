// Function file, for the page's own world. Returns `this` as JSON, at most `limit` + 1 characters of it.
// Collections become lists, elements their HTML.
(function (limit) {
  const isList = [Map, Set, NodeList, HTMLCollection].some((kind) => this instanceof kind);
  const value = isList ? [...this] : this instanceof Element ? this.outerHTML : this;
  return (JSON.stringify(value) ?? 'null').slice(0, limit + 1);
})
