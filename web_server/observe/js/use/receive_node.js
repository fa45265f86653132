// Function file, for the page's own world. Returns an object that gets `node` from the next event
// of this name; `sendNode` in target.js sends it.
(name) => {
  const received = {};
  const receive = (event) => {
    received.node = event.submitter || event.getTargetRanges()[0].startContainer;
  };
  document.addEventListener(name, receive, { once: true });
  return received;
}
