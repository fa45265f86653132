// Part of settling: the functions that the server calls, in an isolated world of the main frame.
// `TOKEN` is the secret under which timers.js answers.
/* global TOKEN */
/* global changes, restlessCount, stopWatching, takeDirty, watch -- changes.js */
/* global clickedDownloads, invalidField, startAction, takeCopied -- user_events.js */
/* global awaitAnimations, changesUnseen, isAnimating, nextFrame, pause -- motion.js */
/* global isBlank -- blank.js */
/* global scrollPage -- scroll.js */

const LONGEST_STATE = 2000000;
const GROWTH = 10;  // elements that an application adds while it starts
let lastState = null;  // the storage that `rest` reported last

// Dispatches an event for timers.js or the observer. Returns whether a listener cancelled it.
function ask(what) {
  return !document.dispatchEvent(new CustomEvent(TOKEN + what, { cancelable: true }));
}

// Origin, local storage, session storage and cookies as JSON; null for an opaque origin, which has
// no storage.
function storageState() {
  try {
    return JSON.stringify(
      [location.origin, { ...localStorage }, { ...sessionStorage }, document.cookie]);
  } catch {
    return null;
  }
}

function elementCount() {
  return document.getElementsByTagName('*').length;
}

// Runs at changes of the document until `check` returns a value or the time is over.
function whenChanged(milliseconds, check) {
  watch();
  return new Promise((resolve) => {
    const end = performance.now() + milliseconds;
    const look = () => {
      const found = check(takeDirty());
      if (found || performance.now() > end) resolve(found);
      else pause(look);
    };
    look();
  });
}

globalThis.ckSettle = {
  // Starts to watch. Call it right before an action. `ofKey`: the action presses keys.
  arm(ofKey = false) {
    watch();
    awaitAnimations(ofKey);
    startAction();
    ask('arm');
  },

  // Waits until the effects of the action have finished, at most so long. The page is quiet after a
  // frame in which nothing changed and after which nothing is pending.
  // `isNew`: whether the document may still be filled by its scripts.
  async quiet(milliseconds, isNew) {
    const end = performance.now() + milliseconds;
    const size = isNew ? elementCount() : 0;
    let late = false;
    takeDirty(); // immediate effects of the action are changes, but do not prolong the wait
    for (let busy = true; busy && !late;) {
      await nextFrame();
      const changed = takeDirty();
      busy = changed || ask('busy') || isAnimating();
      late = busy && performance.now() > end;
    }
    const unseen = changesUnseen();
    const blank = isNew && isBlank();
    return {
      changes, late, copied: takeCopied(), downloads: clickedDownloads(), invalid: invalidField(), unseen, blank,
      grows: isNew && late && elementCount() >= size + GROWTH, restless: restlessCount, seen: !blank && ask('still'),
    };
  },

  // Waits until nothing changes or moves for a frame, at most so long.
  async still(milliseconds) {
    const end = performance.now() + milliseconds;
    takeDirty();
    do await nextFrame(); while ((takeDirty() || isAnimating()) && performance.now() < end);
  },

  // Waits for the first change of the document, at most so long. Resolves with whether it came.
  changed(milliseconds) {
    return whenChanged(milliseconds, (changed) => changed);
  },

  // Waits until the document shows something, at most so long. Resolves with whether it does.
  filled(milliseconds) {
    return whenChanged(milliseconds, () => !isBlank());
  },

  scroll: scrollPage,

  // Stops watching. Returns the storage, which a crash would lose; null if it did not change.
  rest(again) {
    stopWatching();
    ask('rest');
    const state = storageState();
    if (!state || state.length > LONGEST_STATE || state === lastState && !again) return null;
    lastState = state;
    return state;
  },
};
watch();
