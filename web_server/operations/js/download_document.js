// Function file, for the page's own world. Downloads the document that the page shows.
() => {
  const link = document.createElement('a');
  Object.assign(link, { href: location.href, download: '' });
  link.click();
}
