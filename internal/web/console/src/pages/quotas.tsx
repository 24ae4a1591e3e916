// Quotas: how much a user, a client id or an address may use.
import { useState } from "preact/hooks";
import type { QuotaPart, QuotaRow, QuotaValue } from "../../../ui/api";
import { act } from "../act";
import { useAsk } from "../ask";
import { Confirm } from "../confirm";
import { Acting, Form, Listing } from "../dialog";
import { Select, Text } from "../fields";
import * as f from "../format";
import { ActsHead, Empty, Num, Table } from "../parts";

/** What a quota counts, of whom, and how it is written. */
const kinds: { name: string; text: string; note: string; ip?: boolean; bytes?: boolean }[] = [
  { name: "producer_byte_rate", text: "Produce", note: "bytes a second", bytes: true },
  { name: "consumer_byte_rate", text: "Fetch", note: "bytes a second", bytes: true },
  { name: "controller_mutation_rate", text: "Changes", note: "partitions created and deleted a second" },
  { name: "request_percentage", text: "Request time", note: "percent of one thread" },
  { name: "connection_creation_rate", text: "Connections", note: "new ones a second", ip: true },
];

export function Quotas() {
  return (
    <Listing
      title="Quotas"
      lead="How much a client may use of each broker. Clients over a quota are throttled, not refused. The most specific quota counts: user and client id, then user, then client id, then those for all others."
      asked={useAsk("quotas", {}, {}, 30)}
      add="Set a quota"
      form={() => <SetQuota />}
    >
      {({ quotas }) => (quotas.length === 0 ? <Nothing /> : <Rows all={quotas} />)}
    </Listing>
  );
}

function Nothing() {
  return (
    <Empty title="No quotas yet" commands={["muster quotas set user=alice producer_byte_rate=10MiB"]}>
      Clients are not limited. To set a quota in a terminal:
    </Empty>
  );
}

const types: Record<string, string> = { user: "user", "client-id": "client id", ip: "address" };

/** Whom quotas are for, in words. */
function whom(entity: QuotaPart[]): string {
  return entity.map((p) => (p.name === null ? `each ${types[p.type] ?? p.type} without its own` : `${types[p.type] ?? p.type} ${p.name}`)).join(", ");
}

function amount(v: QuotaValue): string {
  const kind = kinds.find((k) => k.name === v.name);
  return kind?.bytes ? f.bytes(v.value) + "/s" : v.name === "request_percentage" ? `${v.value} %` : `${v.value}/s`;
}

function Rows({ all }: { all: QuotaRow[] }) {
  const used = kinds.filter((k) => all.some((q) => q.values.some((v) => v.name === k.name)));
  return (
    <Table label="Quotas">
      <thead>
        <tr>
          <th scope="col">For</th>
          {used.map((k) => (
            <th scope="col" class="num" key={k.name} title={`${k.name}: ${k.note}`}>
              {k.text}
            </th>
          ))}
          <ActsHead />
        </tr>
      </thead>
      <tbody>
        {all.map((q) => (
          <tr key={whom(q.entity)}>
            <th scope="row" class="wide">
              <span class="name">{f.capital(whom(q.entity))}</span>
            </th>
            {used.map((k) => {
              const v = q.values.find((x) => x.name === k.name);
              return (
                <Num key={k.name} quiet={!v}>
                  {v ? amount(v) : "–"}
                </Num>
              );
            })}
            <td class="do">
              <Acting plain text="Change …" label={`Change the quotas of ${whom(q.entity)}`} title={`Quotas of ${whom(q.entity)}`}>
                <SetQuota of={q} />
              </Acting>
              <Acting plain danger text="Remove …" label={`Remove the quotas of ${whom(q.entity)}`} title={`Remove the quotas of ${whom(q.entity)}`}>
                <Confirm name="alterQuota" params={{}} body={{ entity: q.entity, remove: q.values.map((v) => v.name) }} verb="Remove the quotas" />
              </Acting>
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function SetQuota({ of }: { of?: QuotaRow }) {
  const [user, setUser] = useState("");
  const [client, setClient] = useState("");
  const [ip, setIP] = useState("");
  const [who, setWho] = useState("user");
  const [values, setValues] = useState<Record<string, string>>(Object.fromEntries((of?.values ?? []).map((v) => [v.name, String(v.value)])));
  const part = (type: string, name: string): QuotaPart => ({ type, name: name.trim() === "*" ? null : name.trim() });
  const entity = of?.entity ?? [...(who.includes("user") ? [part("user", user)] : []), ...(who.includes("client") ? [part("client-id", client)] : []), ...(who === "ip" ? [part("ip", ip)] : [])];
  const offered = kinds.filter((k) => (k.ip ?? false) === (entity[0]?.type === "ip"));
  const set = offered.filter((k) => values[k.name]?.trim()).map((k): QuotaValue => ({ name: k.name, value: Number(values[k.name]) }));
  const remove = (of?.values ?? []).map((v) => v.name).filter((n) => !values[n]?.trim());
  return (
    <Form verb="Set the quotas" ready={set.length + remove.length > 0} submit={async () => (await act("alterQuota", {}, { entity, set, remove })).sentences.join(" ")}>
      {!of && (
        <>
          <Select
            label="For"
            value={who}
            set={setWho}
            options={[
              ["user", "a user"],
              ["client", "a client id"],
              ["user and client", "a user with a client id"],
              ["ip", "an address"],
            ]}
          />
          <div class="two">
            {who.includes("user") && <Text label="User" required mono hint="alice" value={user} set={setUser} note="* for each that has none of its own." />}
            {who.includes("client") && <Text label="Client id" required mono value={client} set={setClient} note="* for each that has none of its own." />}
            {who === "ip" && <Text label="Address" required mono hint="10.0.0.9" value={ip} set={setIP} note="* for each that has none of its own." />}
          </div>
        </>
      )}
      <div class="two">
        {offered.map((k) => (
          <Text key={k.name} label={k.text} type="number" min={0} step="any" hint="no quota" value={values[k.name] ?? ""} set={(v) => setValues({ ...values, [k.name]: v })} note={`${k.name}: ${k.note}.`} />
        ))}
      </div>
    </Form>
  );
}
