// Preact with htm, for all local pages: html`<p>${text}</p>` makes text nodes, never markup from text.
import { Component, Fragment, createContext, h, render } from './vendor/preact.js';
import { useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from './vendor/hooks.js';
import htm from './vendor/htm.js';

export const html = htm.bind(h);

export {
  Component, Fragment, createContext, h, render,
  useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState,
};
