// Changing something. What was done is told on the page, and everything is read again.
import { signal } from "@preact/signals";
import type { Acts, Problem } from "../../ui/api";
import { type Params, Refused } from "./ask";
import { sentence } from "./parts";
import { path } from "./route";
import { loginNeeded, question, send, session } from "./session";

export type ActName = keyof Acts;
export type Body<N extends ActName> = Acts[N]["body"];

/** The acts that say first what they would do. */
export type Shown = Exclude<ActName, "produce" | "planReset" | "executeReset">;

const routes: { [N in ActName]: [method: Acts[N]["method"], path: Acts[N]["path"]] } = {
  createTopic: ["POST", "/topics"],
  deleteTopic: ["DELETE", "/topics/{topic}"],
  addPartitions: ["POST", "/topics/{topic}/partitions"],
  alterTopic: ["PUT", "/topics/{topic}/configs"],
  produce: ["POST", "/topics/{topic}/records"],
  deleteRecords: ["DELETE", "/topics/{topic}/records"],
  planReset: ["POST", "/groups/{group}/resets"],
  executeReset: ["POST", "/groups/{group}/resets/execute"],
  deleteGroup: ["DELETE", "/groups/{group}"],
  deleteOffsets: ["DELETE", "/groups/{group}/offsets"],
  removeMember: ["POST", "/groups/{group}/members/remove"],
  setPassword: ["PUT", "/users/{user}"],
  deleteUser: ["DELETE", "/users/{user}"],
  addAcl: ["POST", "/acls"],
  removeAcl: ["DELETE", "/acls"],
  alterQuota: ["PUT", "/quotas"],
};

/** Does something, or has the broker say what it would do. */
export async function act<N extends ActName>(name: N, params: Params, body: Body<N>, preview: N extends Shown ? boolean : false = false as never): Promise<Acts[N]["answer"]> {
  const [method, below] = routes[name];
  const to = "/api/v1" + below.replace(/\{(\w+)\}/g, (_, param: string) => encodeURIComponent(params[param] ?? "")) + (preview ? "?preview=true" : "");
  const init: RequestInit = body === null ? { method } : { method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  const { answer, body: said } = preview || name === "planReset" ? await question(to, init) : await sent(to, init);
  if (!answer.ok) throw new Refused(answer.status, said as Problem);
  return said as Acts[N]["answer"];
}

/** Sends what changes something. It is not given up: no one would know whether it was done. */
async function sent(to: string, init: RequestInit): Promise<{ answer: Response; body: unknown }> {
  const answer = await send(to, init);
  return { answer, body: await answer.json() };
}

/** Why nothing may be changed here; empty if it may. Rights decide the rest, each at its time. */
export function mayNot(): string {
  const why = session.value?.readOnly;
  return why ? sentence(why) : "";
}

/** What was done last, and on which page it is told. */
export const told = signal<{ text: string; path: string; bad: boolean } | null>(null);

// It is told once: not to who comes back to the page later, nor to who logs in next.
path.subscribe((now) => {
  if (told.value !== null && told.value.path !== now) told.value = null;
});
loginNeeded.subscribe((needed) => {
  if (needed) told.value = null;
});

export function say(text: string, bad = false): void {
  told.value = { text, path: path.value, bad };
}

/** What was deleted here, and which look at the broker still had it: lists are as of the last one. */
const deleted = new Map<string, string | null>();

export function deletes(what: "group" | "topic", name: string): void {
  deleted.set(`${what} ${name}`, null);
}

/** Whether a list, as of a look, has something that is gone since. */
export function isDeleted(what: "group" | "topic", name: string, at: string | null): boolean {
  const key = `${what} ${name}`;
  const before = deleted.get(key);
  if (before === undefined) return false;
  if (before === null) deleted.set(key, at);
  return before === null || before === at;
}
