// Part of the walker: elements that report something to the user, by their role or class: alerts,
// status lines, errors of a form, toasts.
/* exported isMessage */

const MESSAGE_ROLES = /^(alert|alertdialog|log|status)$/;
const MESSAGE_WORDS = new RegExp('(^|[\\s_-])(alerts?|errors?|errorlist|success|warnings?|notices?|flash|toasts?|'
  + 'snackbar|messages?|notifications?|feedback|invalid|validation)(?=[\\s_-]|$)', 'i');
const LONG_MESSAGE = 1000;

function isMessage(element) {
  if (element.localName === 'form' || element.attributes.length === 0) return false;
  const role = element.getAttribute('role');
  if (role && MESSAGE_ROLES.test(role)) return true;
  const words = `${element.getAttribute('class') || ''} ${element.getAttribute('id') || ''}`;
  return (MESSAGE_WORDS.test(words) || element.hasAttribute('aria-live')) && element.localName !== 'body'
    && element.localName !== 'html' && element.textContent.length < LONG_MESSAGE;
}
