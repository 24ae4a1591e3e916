// Who is logged in. All that is sent to the broker goes through here, so that the end of a
// login is noticed wherever it shows.
import { signal } from "@preact/signals";
import type { Session } from "../../ui/api";

/** Who someone is and what is open to them; null before the broker has said so. */
export const session = signal<Session | null>(null);

/** Whether someone has to log in before anything else is shown. */
export const loginNeeded = signal(false);

/** Whether someone is logging out: nothing may be opened that would be refused. */
export const leaving = signal(false);

/** Sends a request as a page of the console: the browser does not ask for a password by itself then. */
export async function send(address: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set("X-Requested-With", "muster");
  const answer = await fetch(address, { ...init, headers });
  if (answer.status === 401) loginNeeded.value = true;
  return answer;
}

/** How long an answer may take, in milliseconds: a broker that hangs does not answer. */
const patience = 15_000;

/** Sends what changes nothing and may therefore be given up, and reads the answer, in time. */
export async function question(address: string, init: RequestInit = {}): Promise<{ answer: Response; body: unknown }> {
  const ended = new AbortController();
  const end = (): void => ended.abort();
  const timer = setTimeout(end, patience);
  init.signal?.addEventListener("abort", end);
  if (init.signal?.aborted) end();
  try {
    const answer = await send(address, { ...init, signal: ended.signal });
    return { answer, body: await answer.json() };
  } finally {
    clearTimeout(timer);
    init.signal?.removeEventListener("abort", end);
  }
}

/** Takes note of who someone is now. */
export function enter(now: Session): void {
  session.value = now;
  loginNeeded.value = now.loginWanted && now.user === null;
}

/** Logs out. */
export async function leave(): Promise<void> {
  leaving.value = true;
  try {
    const answer = await send("/api/v1/session", { method: "DELETE" });
    if (answer.ok) enter((await answer.json()) as Session);
  } catch {
    // The broker does not answer; the page says so.
  }
  leaving.value = false;
}

/** Asks who is logged in. Without an answer pages are shown, which say that there is none. */
export async function readSession(): Promise<void> {
  try {
    const { answer, body } = await question("/api/v1/session");
    if (answer.ok) enter(body as Session);
  } catch {
    // Whoever asks next finds out.
  }
}
