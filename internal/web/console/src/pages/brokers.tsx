import type { BrokerList } from "../../../ui/api";
import { useAsk } from "../ask";
import * as f from "../format";
import { Hitch, Incomplete, Num, Problem, Section, Table, Title, useTitle } from "../parts";

export function Brokers() {
  useTitle("Brokers");
  const { data, problem } = useAsk("brokers", {}, {});
  return (
    <>
      <Title>Brokers</Title>
      <Hitch of={problem} data={data} />
      {data && <List data={data} />}
      {data && <Settings />}
    </>
  );
}

function List({ data }: { data: BrokerList }) {
  return (
    <>
      <p class="lead quiet">
        Cluster <code>{data.cluster}</code>
      </p>
      <Incomplete of={data.incomplete} />
      <Table label="Brokers">
        <thead>
          <tr>
            <th scope="col">Broker</th>
            <th scope="col">Status</th>
            <th scope="col" class="num">Partitions led</th>
            <th scope="col" class="num">Groups coordinated</th>
            <th scope="col">Listeners</th>
            <th scope="col">Rack</th>
          </tr>
        </thead>
        <tbody>
          {data.brokers.map((b) => (
            <tr key={b.id}>
              <th scope="row">
                <span class="name">{b.id}</span>
                <span class="says">{[b.here && "serves this page", b.controller && "controller"].filter(Boolean).join(", ")}</span>
              </th>
              <td>{b.health ? (b.health.problems?.join(" ") ?? "healthy") : <span class="quiet">no answer</span>}</td>
              <Num>{f.count(b.partitions)}</Num>
              <Num>{b.groups === null ? "–" : f.count(b.groups)}</Num>
              <td class="wide">
                {b.listeners.map((l) => (
                  <div key={l.name}>
                    <code>
                      {l.host}:{l.port}
                    </code>{" "}
                    <span class="quiet">{l.name}</span>
                  </div>
                ))}
              </td>
              <td>{b.rack || <span class="quiet">–</span>}</td>
            </tr>
          ))}
        </tbody>
      </Table>
    </>
  );
}

function Settings() {
  const { data, problem } = useAsk("settings", {}, { set: true }, 30);
  if (!data) {
    return problem ? (
      <Section title="Settings">
        <Problem of={problem} />
      </Section>
    ) : null;
  }
  return (
    <Section title="Settings" note="those that were set on the broker that serves this page">
      {data.settings.length === 0 ? (
        <p class="quiet">None: it runs on defaults.</p>
      ) : (
        <Table label="Settings of the broker">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Value</th>
              <th scope="col">Default</th>
              <th scope="col">Set</th>
            </tr>
          </thead>
          <tbody>
            {data.settings.map((s) => (
              <tr key={s.name}>
                <th scope="row" class="wide">
                  <code>{s.name}</code>
                  <span class="says">{s.doc}</span>
                </th>
                <td class="value">{s.value === null ? <span class="quiet">not shown</span> : s.value}</td>
                <td class="value quiet">{s.default || "–"}</td>
                <td>{s.source === "altered" ? "at run time" : "at start"}</td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
    </Section>
  );
}
