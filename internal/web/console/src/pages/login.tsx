// The page that is shown in place of any other while someone has to log in: the address
// stays, so that they see what they asked for afterwards.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem, Session } from "../../../ui/api";
import { capital } from "../format";
import { useTitle } from "../parts";
import { enter, leave, session } from "../session";

async function logIn(user: string, password: string): Promise<string> {
  try {
    const answer = await fetch("/api/v1/session", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Requested-With": "muster" },
      body: JSON.stringify({ user, password }),
    });
    if (answer.ok) {
      enter((await answer.json()) as Session);
      return "";
    }
    return ((await answer.json()) as Problem).message;
  } catch {
    return "the broker does not answer";
  }
}

export function Login() {
  useTitle("Log in");
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const given = new FormData(form);
    setBusy(true);
    const wrong = await logIn(String(given.get("user")), String(given.get("password")));
    setBusy(false);
    setProblem(wrong);
    if (!wrong) return;
    const password = form.elements.namedItem("password") as HTMLInputElement;
    password.value = "";
    password.focus();
  };
  return (
    <main class="login">
      <form
        method="post"
        onSubmit={(e) => {
          e.preventDefault();
          if (!busy) void submit(e.currentTarget);
        }}
      >
        <svg viewBox="0 0 32 32" width="36" height="36" aria-hidden="true">
          <rect width="32" height="32" rx="7" />
          <path d="M7 23V9l9 8 9-8v14" />
        </svg>
        <h1>Log in to muster</h1>
        {problem ? (
          <p class="notice bad" role="alert">
            {capital(problem)}.
          </p>
        ) : (
          <p class="quiet">As a user of this cluster.</p>
        )}
        <label>
          User
          <input ref={first} name="user" autocomplete="username" autocapitalize="none" spellcheck={false} required />
        </label>
        <label>
          Password
          <input name="password" type="password" autocomplete="current-password" required />
        </label>
        <button type="submit" class="main" aria-disabled={busy}>
          {busy ? "Logging in …" : "Log in"}
        </button>
        {session.value?.ways.includes("oidc") && (
          <a class="other" href={"/api/v1/session/oidc?back=" + encodeURIComponent(location.pathname + location.search)}>
            Log in at the issuer
          </a>
        )}
      </form>
    </main>
  );
}

/** Who is logged in, and the way out. */
export function Who() {
  const now = session.value;
  if (!now) return null;
  if (now.user === null) return now.readOnly ? <p class="who" title={capital(now.readOnly) + "."}>Read only</p> : null;
  return (
    <p class="who">
      <span title={`Logged in as ${now.user}`}>{now.user}</span>
      {now.login === "cookie" && (
        <button type="button" class="plain" onClick={() => void leave()}>
          Log out
        </button>
      )}
    </p>
  );
}
