// Function file, for the clipboard's page. Keeps what the next paste brings in `pasted`, by type.
(longest) => {
  globalThis.pasted = {};
  document.onpaste = (event) => {
    event.preventDefault();
    for (const type of event.clipboardData.types) {
      const text = event.clipboardData.getData(type);
      if (text && text.length <= longest) globalThis.pasted[type] = text;
    }
  };
}
