import { render } from "preact";
import { silentSince, useAsk } from "./ask";
import { Told } from "./dialog";
import * as f from "./format";
import { Help, listenToKeys } from "./keys";
import { Acls } from "./pages/acls";
import { Brokers } from "./pages/brokers";
import { Group } from "./pages/group";
import { Groups } from "./pages/groups";
import { Journal } from "./pages/journal";
import { Login, Who } from "./pages/login";
import { Overview } from "./pages/overview";
import { Quotas } from "./pages/quotas";
import { Topic } from "./pages/topic";
import { Topics } from "./pages/topics";
import { Users } from "./pages/users";
import { listen, parts } from "./route";
import { loginNeeded, readSession } from "./session";
import { applyTheme, Switch } from "./theme";
import { Title, useTitle } from "./parts";

const nav: [path: string, text: string][] = [
  ["/", "Overview"],
  ["/groups", "Groups"],
  ["/topics", "Topics"],
  ["/brokers", "Brokers"],
  ["/journal", "Journal"],
  ["/users", "Users"],
  ["/acls", "ACLs"],
  ["/quotas", "Quotas"],
];

function Page() {
  const [first, second] = parts.value;
  switch (first) {
    case undefined:
      return <Overview />;
    case "groups":
      return second === undefined ? <Groups /> : <Group name={second} key={second} />;
    case "topics":
      return second === undefined ? <Topics /> : <Topic name={second} key={second} />;
    case "brokers":
      return <Brokers />;
    case "journal":
      return <Journal />;
    case "users":
      return <Users />;
    case "acls":
      return <Acls />;
    case "quotas":
      return <Quotas />;
  }
  return <NotFound />;
}

function NotFound() {
  useTitle("Page not found");
  return (
    <>
      <Title>Page not found</Title>
      <p class="lead">
        There is no page at this address. <a href="/">Go to the overview</a>
      </p>
    </>
  );
}

function Where() {
  const { data } = useAsk("brokers", {}, {}, 30);
  const here = data?.brokers.find((b) => b.here);
  if (!here) return null;
  return (
    <p class="where">
      Broker {here.id}
      <br />
      <span title="the cluster id">{data?.cluster}</span>
    </p>
  );
}

function Silence() {
  const since = silentSince.value;
  if (!since) return null;
  return (
    <div class="silence" role="status">
      The broker does not answer. What you see is as of {f.when(since)}.
    </div>
  );
}

function App() {
  if (loginNeeded.value) return <Login />;
  const section = "/" + (parts.value[0] ?? "");
  return (
    <>
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <div class="side">
        <a class="brand" href="/">
          <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
            <rect width="32" height="32" rx="7" />
            <path d="M7 23V9l9 8 9-8v14" />
          </svg>
          muster
        </a>
        <nav aria-label="Pages">
          {nav.map(([path, text]) => (
            <a key={path} href={path} aria-current={path === section ? "page" : undefined}>
              {text}
            </a>
          ))}
        </nav>
        <div class="foot">
          <Who />
          <Where />
          <Switch />
          <Help />
        </div>
      </div>
      <main id="main" tabIndex={-1} class={silentSince.value ? "silent" : undefined}>
        <Silence />
        <Told />
        <Page />
      </main>
    </>
  );
}

applyTheme();
listen();
listenToKeys();
const root = document.getElementById("app");
if (root) void readSession().then(() => render(<App />, root));
