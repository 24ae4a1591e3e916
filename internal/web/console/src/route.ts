// The address bar is the state: page, filters, order, tab and selection are read from it
// and written to it, so that a link shows someone else the same.
import { computed, signal } from "@preact/signals";

const here = signal(location.pathname + location.search);

export const path = computed(() => here.value.split("?")[0] ?? "/");
export const query = computed(() => new URLSearchParams(here.value.split("?")[1] ?? ""));

/** The parts of the path, decoded. */
export const parts = computed(() => path.value.split("/").filter(Boolean).map(decoded));

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // Someone typed it.
  }
}

export function go(to: string, replace = false): void {
  if (to === here.value) return;
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  const moved = to.split("?")[0] !== path.value;
  here.value = to;
  if (moved) {
    scrollTo(0, 0);
    // Who listens to the page is told where they are.
    requestAnimationFrame(() => document.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true }));
  }
}

/** The address of this page with some parameters changed; an empty one is left out. */
export function withQuery(changes: Record<string, string>): string {
  const q = new URLSearchParams(query.value);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") q.delete(name);
    else q.set(name, value);
  }
  const text = q.toString();
  return path.value + (text === "" ? "" : "?" + text);
}

export function setQuery(changes: Record<string, string>, replace = false): void {
  go(withQuery(changes), replace);
}

export function param(name: string): string {
  return query.value.get(name) ?? "";
}

export const groupPath = (name: string): string => "/groups/" + encodeURIComponent(name);
export const topicPath = (name: string): string => "/topics/" + encodeURIComponent(name);

/** Follows links without loading the page anew. */
export function listen(): void {
  addEventListener("popstate", () => {
    here.value = location.pathname + location.search;
  });
  document.addEventListener("click", (e) => {
    const link = (e.target as Element).closest("a");
    if (!link || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    if (link.target || link.origin !== location.origin || link.pathname.startsWith("/api/") || link.pathname === "/metrics") return;
    if (link.hash && link.pathname + link.search === location.pathname + location.search) return; // To a part of this page.
    e.preventDefault();
    go(link.pathname + link.search);
  });
}
