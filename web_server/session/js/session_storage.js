// Function file, for the page's own world, before its scripts. Restores the session storage of a
// tab: `storage` maps origins to JSON texts of items.
(storage) => {
  for (const [origin, items] of Object.entries(storage)) {
    if (location.origin === origin && !sessionStorage.length) {
      Object.assign(sessionStorage, JSON.parse(items));
    }
  }
}
