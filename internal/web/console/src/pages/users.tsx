// Users: who can log in, by which mechanisms.
import { useState } from "preact/hooks";
import type { UserRow } from "../../../ui/api";
import { act } from "../act";
import { useAsk } from "../ask";
import { Confirm } from "../confirm";
import { Acting, Form, Listing } from "../dialog";
import { Text } from "../fields";
import { ActsHead, Command, Empty, Section, Table } from "../parts";

export function Users() {
  return (
    <Listing
      title="Users"
      lead="Who can log in to Kafka listeners and to this console with a name and a password. ACLs say what they may do."
      asked={useAsk("users", {}, {}, 30)}
      add="Create a user"
      form={({ users }) => <Password others={users.map((u) => u.name)} />}
    >
      {({ users }) => (users.length === 0 ? <NoUsers /> : <Rows users={users} />)}
    </Listing>
  );
}

/** Without users there is no login; how that is switched on. */
function NoUsers() {
  return (
    <>
      <Empty title="No users yet">No login is needed: everyone who reaches the broker is User:ANONYMOUS. Once there is a user, the console and its API require a login.</Empty>
      <Section title="How to require a login">
        <p class="lead">Start the broker with a listener that requires a login, and with a first user who may do everything. Without TLS (SASL_PLAINTEXT) passwords can be read on the network, so use that on this machine only.</p>
        <Command>{"muster serve --set listeners=SASL_SSL://0.0.0.0:9092 --set ssl.keystore.location=server.pem --set 'muster.bootstrap.user=admin:${file:admin.pw}'"}</Command>
      </Section>
    </>
  );
}

function Rows({ users }: { users: UserRow[] }) {
  return (
    <Table label="Users">
      <thead>
        <tr>
          <th scope="col">User</th>
          <th scope="col">Mechanisms</th>
          <ActsHead />
        </tr>
      </thead>
      <tbody>
        {users.map((u) => (
          <tr key={u.name}>
            <th scope="row" class="wide">
              <span class="name">{u.name}</span>
            </th>
            <td>{u.mechanisms.join(", ")}</td>
            <td class="do">
              <a href={`/acls?principal=${encodeURIComponent("User:" + u.name)}`}>Rules</a>{" "}
              <Acting plain text="Password …" label={`Set the password of ${u.name}`} title={`Set the password of ${u.name}`}>
                <Password user={u.name} />
              </Acting>
              <Acting plain danger text="Delete …" label={`Delete the user ${u.name}`} title={`Delete the user ${u.name}`}>
                <Confirm name="deleteUser" params={{ user: u.name }} body={null} verb="Delete the user" />
              </Acting>
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function Password({ user, others = [] }: { user?: string; others?: string[] }) {
  const [name, setName] = useState(user ?? "");
  const [password, setPassword] = useState("");
  const [again, setAgain] = useState("");
  const differ = again !== "" && again !== password;
  return (
    <Form
      verb={user === undefined ? "Create the user" : "Set the password"}
      ready={password === again && !others.includes(name)}
      submit={async () => (await act("setPassword", { user: name }, { password })).sentences.join(" ")}
    >
      {user === undefined && others.length === 0 && (
        <p class="notice">
          <span aria-hidden="true">▲ </span>
          This is the first user. From then on this page, too, wants a login. If the broker goes by rules, see to it that the user is in <code>super.users</code> or has rules.
        </p>
      )}
      {user === undefined ? <Text label="Name" required mono value={name} set={setName} note={<span aria-live="polite">{others.includes(name) ? "There is this user already." : ""}</span>} /> : <p>Connections that are logged in stay so. New ones want the new password.</p>}
      <Text label="Password" type="password" required value={password} set={setPassword} />
      <Text label="Password again" type="password" required value={again} set={setAgain} note={<span aria-live="polite">{differ ? "The two differ." : ""}</span>} />
    </Form>
  );
}
