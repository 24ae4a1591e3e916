// One stream of the broker tells what has changed, so that it can be read again at once.
// Without it, pages ask every few seconds.
import { signal } from "@preact/signals";
import type { Changed } from "../../ui/api";
import { leaving, loginNeeded, readSession } from "./session";

/** Whether the stream is open. */
export const live = signal(false);

const listeners = new Map<string, Set<() => void>>();
let source: EventSource | null = null;
let opened = "";
let timer = 0;

/** Has a function called whenever something has changed. Returns how to end that. */
export function watch(what: string, changed: () => void): () => void {
  const some = listeners.get(what) ?? new Set();
  listeners.set(what, some.add(changed));
  later();
  return () => {
    some.delete(changed);
    if (some.size === 0 && listeners.get(what) === some) listeners.delete(what);
    later();
  };
}

/** Has everything read again, where something may have changed unheard. */
function all(): void {
  listeners.forEach((some) => some.forEach((f) => f()));
}

/** Opens the stream anew when what a page watches is not what it was; a new page asks for several things at once. */
function later(): void {
  clearTimeout(timer);
  timer = setTimeout(reopen, 50);
}

function close(): void {
  source?.close();
  source = null;
  opened = "";
  live.value = false;
}

function reopen(): void {
  // Browsers have few connections for all tabs together, so only those that are seen have one.
  const wanted = document.hidden || leaving.value || loginNeeded.value ? "" : [...listeners.keys()].sort().map((what) => "watch=" + encodeURIComponent(what)).join("&");
  if (wanted === opened) return;
  close();
  if (!wanted) return;
  opened = wanted;
  const s = new EventSource("/api/v1/events?" + wanted);
  source = s;
  let broke = false;
  s.addEventListener("open", () => {
    if (source !== s) return;
    live.value = true;
    if (broke) all();
    broke = false;
  });
  s.addEventListener("error", () => {
    if (source !== s) return;
    const was = live.value;
    live.value = false; // It comes again by itself, unless it was refused.
    broke = true;
    if (was) all(); // Whether the broker is gone shows at once.
    if (s.readyState === EventSource.CLOSED) void readSession(); // Perhaps the login has ended.
  });
  s.addEventListener("changed", (e: MessageEvent<string>) => {
    const { watch } = JSON.parse(e.data) as Changed;
    listeners.get(watch)?.forEach((f) => f());
  });
  s.addEventListener("reset", all);
}

document.addEventListener("visibilitychange", () => {
  later();
  if (!document.hidden) all();
});
leaving.subscribe(reopen);
