// Function file, for the clipboard's page. Copies texts, given by type, to the clipboard.
(texts) => {
  document.oncopy = (event) => {
    event.preventDefault();
    for (const [type, text] of Object.entries(texts)) event.clipboardData.setData(type, text);
  };
  document.execCommand('copy');
}
