// Keys: they go to places and move the focus; none changes anything.
import { go } from "./route";

const places: Record<string, string> = { o: "/", g: "/groups", t: "/topics", b: "/brokers", j: "/journal", u: "/users", a: "/acls", q: "/quotas" };

const told: [keys: string, what: string][] = [
  ["/", "Filter the list"],
  ["j  k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["g o", "Overview"],
  ["g g", "Groups"],
  ["g t", "Topics"],
  ["g b", "Brokers"],
  ["g j", "Journal"],
  ["g u", "Users"],
  ["g a", "ACLs"],
  ["g q", "Quotas"],
  ["?", "These keys"],
];

function dialog(): HTMLDialogElement | null {
  return document.querySelector("dialog.keys");
}

export function Help() {
  return (
    <>
      <button type="button" class="plain" onClick={() => dialog()?.showModal()}>
        Keys <kbd>?</kbd>
      </button>
      <dialog class="keys" aria-labelledby="keys-title">
        <h2 id="keys-title">Keys</h2>
        <table>
          <tbody>
            {told.map(([keys, what]) => (
              <tr key={keys}>
                <th scope="row">
                  {keys.split(" ").filter(Boolean).map((k) => (
                    <kbd key={k}>{k}</kbd>
                  ))}
                </th>
                <td>{what}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <button type="button" onClick={() => dialog()?.close()}>
          Close
        </button>
      </dialog>
    </>
  );
}

/** Moves the focus among the links that rows have. */
function step(by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
  if (rows.length === 0) return;
  const at = rows.findIndex((r) => r === document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1);
  rows[next]?.focus();
}

export function listenToKeys(): void {
  // When g was pressed, by the keyboard's clock: a page that is busy sees keys late.
  let leader = -Infinity;
  document.addEventListener("keydown", (e) => {
    if (e.metaKey || e.ctrlKey || e.altKey || document.querySelector("dialog[open]")) return;
    const typing = (e.target as Element).closest("input, select, textarea");
    if (e.key === "Escape" && typing) (typing as HTMLElement).blur();
    if (typing) return;
    const place = places[e.key];
    if (place !== undefined && e.timeStamp - leader < 1000) {
      leader = -Infinity;
      e.preventDefault();
      go(place);
      return;
    }
    switch (e.key) {
      case "g":
        leader = e.timeStamp;
        break;
      case "j":
        step(1);
        break;
      case "k":
        step(-1);
        break;
      case "/": {
        const filter = document.querySelector<HTMLInputElement>("[data-filter]");
        if (!filter) return;
        e.preventDefault();
        filter.focus();
        filter.select();
        break;
      }
      case "?":
        dialog()?.showModal();
        break;
    }
  });
}
