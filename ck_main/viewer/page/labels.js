// The label widget of a run, a step or a model call.

export function Labels() {
  return null;
}
