// Take over the browser of a stopped or suspended run.

export function TakeOver() {
  return null;
}
