// Runs in every frame, in the page's own world, after page_recorder.js. Limits the script errors and
// console messages of a document. Chromium reports each over the connection that all sessions share, so
// an endless series would block them.
/* global apply, listen, replaceMethod -- page_recorder.js */

const MAX_REPORTS = 100;
const { preventDefault: silence } = Event.prototype;
const windowOf = Object.getOwnPropertyDescriptor(Document.prototype, 'defaultView').get;

let errors = 0;
const silenceFurther = (event) => {
  errors += 1;
  if (errors > MAX_REPORTS) apply(silence, event, []);
};
const limitErrors = (target) => {
  apply(listen, target, ['error', silenceFurther]);
  apply(listen, target, ['unhandledrejection', silenceFurther]);
};
limitErrors(globalThis);

// These methods may remove all listeners of the window. Adding one that is still there has no effect.
for (const name of ['open', 'write', 'writeln']) {
  replaceMethod(Document.prototype, name, (native, self, args) => {
    const result = apply(native, self, args);
    const opened = apply(windowOf, self, []);
    if (opened) limitErrors(opened);
    return result;
  });
}

let messages = 0;
const { console: pageConsole } = globalThis;
for (const name of Object.getOwnPropertyNames(pageConsole)) {
  if (typeof pageConsole[name] !== 'function' || name === 'createTask') continue;
  replaceMethod(pageConsole, name, (native, self, args) => {
    if (name === 'context') return pageConsole; // the native one returns a console without a limit
    messages += 1;
    return messages > MAX_REPORTS ? undefined : apply(native, self, args);
  });
}
