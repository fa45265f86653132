// Runs in the page on which a person sees a leased browser. Shows its picture once a second, and
// sends clicks, turns of the wheel and keys on it to the server.
const image = document.querySelector('img'), said = document.querySelector('output');
const here = location.pathname.replace(/\/$/, '');
let queue = Promise.resolve(), left = false;
async function show() {
  const reply = await fetch(`${here}/image`);
  if (!reply.ok) { said.value = (await reply.json()).error; left = reply.status === 404; return; }
  const old = image.src;
  image.src = URL.createObjectURL(await reply.blob());
  URL.revokeObjectURL(old);
  await image.decode();
  said.value = said.value || 'Connected.';
}
function send(input) {
  queue = queue.then(async () => {
    const headers = {'Content-Type': 'application/json'}, body = JSON.stringify(input);
    const reply = await (await fetch(`${here}/input`, {method: 'POST', headers, body})).json();
    said.value = reply.error || reply.message;
    await show();
  }).catch((error) => { said.value = String(error); });
}
function at(event) {
  const scale = image.naturalWidth / image.clientWidth;
  return {x: event.offsetX * scale, y: event.offsetY * scale};
}
image.addEventListener('click', (event) => { image.focus(); send({kind: 'click', ...at(event)}); });
image.addEventListener('wheel', (event) => {
  event.preventDefault();
  send({kind: 'wheel', ...at(event), deltaY: event.deltaY});
}, {passive: false});
image.addEventListener('keydown', (event) => {
  if (['Shift', 'Control', 'Alt', 'Meta'].includes(event.key)) return;
  event.preventDefault();
  const plain = event.key.length === 1 && !event.ctrlKey && !event.metaKey;
  const chord = `${event.ctrlKey ? 'Control+' : ''}${event.key}`;
  send(plain ? {kind: 'type', text: event.key} : {kind: 'press', text: chord});
});
async function watch() {
  await show().catch((error) => { said.value = String(error); });
  if (!left) setTimeout(watch, 1000);
}
watch();
