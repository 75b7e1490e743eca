// Where answers come from: the local server, or the data in a report's own file.

const holder = document.getElementById("data");
const embedded = holder ? JSON.parse(holder.textContent) : null;

export const inFile = embedded !== null;
export const leftOut = embedded ? embedded.left_out : [];

export class NoAnswer extends Error {}

export async function ask(run, name, query = {}) {
  const entries = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  if (embedded) return fromFile(name, entries);
  return fetched(`/api/${name}?${new URLSearchParams([["run", run], ...entries])}`);
}

export async function runs(query = {}) {
  if (embedded) return { first: embedded.run, rows: [{ name: embedded.run }], total: 1, offset: 0, limit: 1 };
  return fetched(`/api/runs?${new URLSearchParams(Object.entries(query))}`);
}

function fromFile(name, entries) {
  const words = entries.map(([key, value]) => `${key}=${value}`).sort();
  const found = embedded.answers[[name, ...words].join("|")];
  if (found) return found;
  throw new NoAnswer(`This is left out of the report. wer view ${embedded.run} has it.`);
}

async function fetched(address) {
  let response;
  try {
    response = await fetch(address, { headers: { accept: "application/json" } });
  } catch {
    throw new NoAnswer("The server does not answer: was wer view ended? This page goes on by itself when it is back.");
  }
  if (response.status === 401) throw new NoAnswer("This page's session is over: open the address that wer view printed.");
  const found = await response.json().catch(() => ({ problem: `The server answered ${response.status}.` }));
  if (!response.ok) throw new NoAnswer(found.problem || `The server answered ${response.status}.`);
  return found;
}
