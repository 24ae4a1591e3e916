// ACLs: who may do what, and by which rule.
import { useState } from "preact/hooks";
import type { ACL, ACLRow } from "../../../ui/api";
import { useAsk } from "../ask";
import { Confirm } from "../confirm";
import { Acting, Acts, Form } from "../dialog";
import { Select, Text } from "../fields";
import * as f from "../format";
import { ActsHead, Chip, Command, Empty, Problem, Section, Table, Title, useTitle, Waiting } from "../parts";
import { param, setQuery } from "../route";

type Options = [value: string, text: string][];

const kinds: Options = [
  ["TOPIC", "topic"],
  ["GROUP", "group"],
  ["CLUSTER", "cluster"],
  ["TRANSACTIONAL_ID", "transactional id"],
];

/** What can be done with each kind of resource. */
const operations: Record<string, string[]> = {
  TOPIC: ["READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "ALL"],
  GROUP: ["READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "ALL"],
  CLUSTER: ["CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "ALL"],
  TRANSACTIONAL_ID: ["WRITE", "DESCRIBE", "TWO_PHASE_COMMIT", "ALL"],
};

const said = (word: string): string => word.toLowerCase().replace(/_/g, " ");
const operationsOf = (kind: string): Options => (operations[kind] ?? []).map((o) => [o, said(o)]);

export function Acls() {
  useTitle("ACLs");
  const principal = param("principal");
  const { data, problem } = useAsk("acls", {}, { principal }, 30);
  if (problem) return <Problem of={problem} />;
  if (!data) return <Waiting />;
  return (
    <>
      <Title>ACLs</Title>
      {!data.enabled ? (
        <Off />
      ) : (
        <>
          <p class="lead">Who may do what. A rule that denies wins over those that allow; what no rule allows is denied.</p>
          <Acts>
            <Acting text="Add a rule …" title="Add a rule">
              <Add />
            </Acting>
            <Chip name="principal" label="For" />
          </Acts>
          {data.acls.length === 0 ? <Empty title={principal ? "No rule is for this one" : "There is no rule yet"}>{principal ? "Take the filter away to see more. Rules for everyone (User:*) count, too." : "Only super users may do anything, unless allow.everyone.if.no.acl.found is true."}</Empty> : <Rules all={data.acls} />}
          <Why />
        </>
      )}
    </>
  );
}

function Off() {
  return (
    <Empty
      title="ACLs are off"
      commands={[
        "(umask 077 && openssl rand -hex 16 > admin.pw)",
        "muster serve --set listeners=SASL_PLAINTEXT://127.0.0.1:9092 --set authorizer.class.name=muster --set 'muster.bootstrap.user=admin:${file:admin.pw}'",
        "muster users list --user admin --password-file admin.pw",
      ]}
    >
      Everyone may do everything, since authorizer.class.name is not set. ACLs need users who log in. These commands create a password, start the broker with ACLs and a first user, admin, who may do everything, and log in as admin. If there are users already, name one of them in super.users instead. Beyond this machine, use SASL_SSL:
    </Empty>
  );
}

/** How many rules are shown before someone wants all. */
const few = 500;

function Rules({ all }: { all: ACLRow[] }) {
  const shown = param("all") === "true" ? all : all.slice(0, few);
  return (
    <>
      <Table label="Rules">
        <thead>
          <tr>
            <th scope="col">Who</th>
            <th scope="col">May</th>
            <th scope="col">Resource</th>
            <th scope="col">From</th>
            <ActsHead />
          </tr>
        </thead>
        <tbody>
          {shown.map((r) => (
            <tr key={r.sentence}>
              <th scope="row" class="wide">
                <span class="name">{r.principal}</span>
              </th>
              <td>
                {r.permission === "DENY" ? (
                  <span class="bad">
                    <span aria-hidden="true">✕ </span>not {said(r.operation)}
                  </span>
                ) : (
                  said(r.operation)
                )}
              </td>
              <td class="wide">
                {said(r.resourceType)} {r.resourceType !== "CLUSTER" && <code>{r.resourceName}</code>}
                {r.patternType === "PREFIXED" && <span class="says">all names that begin so</span>}
              </td>
              <td>{r.host === "*" ? <span class="quiet">any host</span> : r.host}</td>
              <td class="do">
                <Acting plain danger text="Remove …" label={`Remove: ${r.sentence}`} title="Remove a rule">
                  <Confirm name="removeAcl" params={{}} body={exact(r)} verb="Remove the rule" />
                </Acting>
              </td>
            </tr>
          ))}
        </tbody>
      </Table>
      {shown.length < all.length && (
        <p>
          <button type="button" class="plain" onClick={() => setQuery({ all: "true" })}>
            Show all {f.plural(all.length, "rule")}
          </button>
        </p>
      )}
    </>
  );
}

const exact = ({ sentence: _, ...rule }: ACLRow): ACL => rule;

/** A name as the broker takes it: alice is User:alice. */
const principalOf = (name: string): string => (name.includes(":") ? name : "User:" + name.trim());

function Add() {
  const [who, setWho] = useState(param("principal"));
  const [permission, setPermission] = useState("ALLOW");
  const [kind, setKind] = useState("TOPIC");
  const [operation, setOperation] = useState("READ");
  const [name, setName] = useState("");
  const [pattern, setPattern] = useState("LITERAL");
  const [host, setHost] = useState("");
  const rule: ACL = { principal: principalOf(who), host: host.trim() || "*", operation, permission, resourceType: kind, resourceName: kind === "CLUSTER" ? "kafka-cluster" : name, patternType: kind === "CLUSTER" ? "LITERAL" : pattern };
  const [asked, ask] = useState(false);
  if (asked) return <Confirm name="addAcl" params={{}} body={rule} verb="Add the rule" back={() => ask(false)} />;
  return (
    <Form verb="Show what would happen" submit={() => ask(true)}>
      <div class="two">
        <Text label="Who" required mono hint="alice" value={who} set={setWho} note="A user, or * for everyone." />
        <Select label="Rule" value={permission} set={setPermission} options={[["ALLOW", "may"], ["DENY", "may not"]]} note="A rule that denies wins." />
        <Select label="Resource" value={kind} set={(k) => (setKind(k), setOperation(operations[k]?.includes(operation) ? operation : "DESCRIBE"))} options={kinds} />
        <Select label="Operation" value={operation} set={setOperation} options={operationsOf(kind)} note="Read, write, delete and alter include describe." />
        {kind !== "CLUSTER" && <Text label="Name of the resource" required mono hint="orders" value={name} set={setName} note="* for all." />}
        {kind !== "CLUSTER" && <Select label="Names" value={pattern} set={setPattern} options={[["LITERAL", "exactly this name"], ["PREFIXED", "all that begin so"]]} />}
        <Text label="From the address" mono hint="any" value={host} set={setHost} />
      </div>
    </Form>
  );
}

/** Whether someone may do something, and which rule decides. The question is in the address. */
function Why() {
  const kind = param("resource") || "TOPIC";
  const [who, setWho] = useState(param("who"));
  const [name, setName] = useState(param("name"));
  const [operation, setOperation] = useState(param("operation") || "READ");
  const [type, setType] = useState(kind);
  const asked = param("who") !== "";
  return (
    <Section title="Who may, and by which rule">
      <form
        class="filters why"
        onSubmit={(e) => {
          e.preventDefault();
          setQuery({ who: who.trim(), operation, resource: type, name: type === "CLUSTER" ? "" : name.trim() });
        }}
      >
        <Text label="Who" required mono hint="alice" value={who} set={setWho} />
        <Select label="Operation" value={operation} set={setOperation} options={operationsOf(type).filter(([o]) => o !== "ALL")} />
        <Select label="Resource" value={type} set={(k) => (setType(k), setOperation(operations[k]?.includes(operation) ? operation : "DESCRIBE"))} options={kinds} />
        {type !== "CLUSTER" && <Text label="Name" required mono hint="orders" value={name} set={setName} />}
        <button type="submit" class="act">
          Ask
        </button>
      </form>
      <div role="status">{asked && <Answer />}</div>
    </Section>
  );
}

function Answer() {
  const { data, problem } = useAsk("aclsWhy", {}, { principal: principalOf(param("who")), operation: param("operation"), resource: param("resource"), name: param("name") }, 60);
  if (problem) return <Problem of={problem} />;
  if (!data) return <Waiting />;
  return (
    <div class={data.allowed ? "finding told" : "finding"}>
      <h3>
        <span aria-hidden="true">{data.allowed ? "✓ " : "✕ "}</span>
        {data.allowed ? "Yes" : "No"}
      </h3>
      <p>{data.sentence}</p>
      {data.command && (
        <>
          <p>This would allow it:</p>
          <Command>{data.command}</Command>
        </>
      )}
    </div>
  );
}
