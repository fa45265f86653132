// Light or dark: the system's choice, or the reader's, kept in this browser.
import { html, useState } from './ui.js';

const KEY = 'ck-theme';
const NEXT = { system: 'light', light: 'dark', dark: 'system' };

function stored() {
  try {
    return localStorage.getItem(KEY) || 'system';
  } catch {
    return 'system'; // a page opened from a file may have no storage
  }
}

function apply(theme) {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

apply(stored());

/** A button that steps through system, light and dark. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(stored);
  const change = () => {
    const next = NEXT[theme];
    try {
      localStorage.setItem(KEY, next);
    } catch { /* the choice then lasts until the page closes */ }
    apply(next);
    setTheme(next);
  };
  const sign = { system: '◐', light: '☀', dark: '☾' }[theme];
  return html`<button class="icon" type="button" onClick=${change} title=${`Colours: ${theme}`}
    aria-label=${`Colours: ${theme}. Switch to ${NEXT[theme]}`}><span aria-hidden="true">${sign}</span></button>`;
}
