// Preact with htm, for all local pages: html`<p>${text}</p>` makes text nodes, never markup from text.
import { Component, Fragment, createContext, h, render as mount } from './vendor/preact.js';
import { useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from './vendor/hooks.js';
import htm from './vendor/htm.js';

export const html = htm.bind(h);

/** A component that renders again only if a prop is another value. */
export function memo(render) {
  return class extends Component {
    shouldComponentUpdate(next) {
      const names = Object.keys(next);
      return names.length !== Object.keys(this.props).length || names.some((name) => next[name] !== this.props[name]);
    }

    render(props) {
      return render(props);
    }
  };
}

export {
  Component, Fragment, createContext, h, mount as render,
  useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState,
};
