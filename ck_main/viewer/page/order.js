// The runs in the order of the table, for the keys that go from run to run.
export const order = { keys: [] };

/** The key of the run `by` places after this one in the table; undefined at its ends. */
export const neighbour = (key, by) => order.keys[order.keys.indexOf(key) + by];
