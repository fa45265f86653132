// Function file, for the pages of web.py. Returns the names of the interactive elements in view.
() => [...document.querySelectorAll('button, a, input, select')].filter((element) => {
  const box = element.getBoundingClientRect();
  return box.bottom > 0 && box.top < innerHeight;
}).map((element) => {
  const named = element.labels && element.labels.length ? element.labels[0] : element;
  return named.innerText.split('\n')[0].trim();
})
