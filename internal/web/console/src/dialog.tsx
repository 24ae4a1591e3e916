// What acts are made of: a button opens a native dialog, which says first what would
// happen, then asks. Nothing is done by a key alone, and Escape leaves all as it is.
import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { mayNot, say, told } from "./act";
import { acted, type Asked, Refused } from "./ask";
import { Mistyped } from "./numbers";
import { path } from "./route";
import { Command, Hitch, sentence, Title, useTitle } from "./parts";

type Children = { children?: ComponentChildren };

/** How what is inside of a dialog closes it. */
const Close = createContext<() => void>(() => undefined);
export const useClose = (): (() => void) => useContext(Close);

/** A button that opens a dialog. Where the act is not allowed, it says why and does nothing. */
export function Acting({ text, title, danger, plain, label, children }: Children & { text: string; title: string; danger?: boolean; plain?: boolean; label?: string }) {
  // Each opening has a number: one that follows at once is not ended by the close event of the one before.
  const [shown, setShown] = useState({ n: 0, open: false });
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  const why = mayNot();
  useLayoutEffect(
    () => () => {
      // What was acted on may be gone, and its button with it. Who was there is not lost.
      if (document.activeElement === button.current) requestAnimationFrame(toHead);
    },
    [],
  );
  return (
    <>
      <button
        ref={button}
        type="button"
        class={(plain ? "plain act" : "act") + (danger ? " danger" : "")}
        aria-label={label}
        aria-haspopup="dialog"
        aria-disabled={why ? true : undefined}
        aria-describedby={why ? id : undefined}
        title={why || undefined}
        onClick={() => !why && setShown(({ n }) => ({ n: n + 1, open: true }))}
      >
        {text}
      </button>
      {why && (
        <span id={id} class="unseen">
          {why}
        </span>
      )}
      {shown.open && (
        <Dialog key={shown.n} title={title} closed={() => setShown((now) => (now.n === shown.n ? { n: now.n, open: false } : now))}>
          {children}
        </Dialog>
      )}
    </>
  );
}

/** Buttons side by side, and why they do nothing, if so. */
export function Acts({ children }: Children) {
  const why = mayNot();
  return (
    <div class="acts">
      {children}
      {why && (
        <span class="quiet" aria-hidden="true">
          {why}
        </span>
      )}
    </div>
  );
}

interface Listed<A> {
  title: string;
  lead: string;
  asked: Asked<A>;
  /** What the button says that adds one, and what it opens. */
  add: string;
  form: (data: A) => ComponentChildren;
  children: (data: A) => ComponentChildren;
}

/** A page of things that people add: what they are, a button for another one, and those that there are. */
export function Listing<A>({ title, lead, asked: { data, problem }, add, form, children }: Listed<A>) {
  useTitle(title);
  return (
    <>
      <Title>{title}</Title>
      <Hitch of={problem} data={data} />
      {data && (
        <>
          <p class="lead">{lead}</p>
          <Acts>
            <Acting text={`${add} …`} title={add}>
              {form(data)}
            </Acting>
          </Acts>
          {children(data)}
        </>
      )}
    </>
  );
}

function Dialog({ title, closed, children }: Children & { title: string; closed: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="act" aria-labelledby={id} onClose={closed}>
      <h2 id={id}>{title}</h2>
      <Close.Provider value={() => dialog.current?.close()}>{children}</Close.Provider>
    </dialog>
  );
}

/** Leads who uses keys to the head of the page, where what they were at is gone. */
function toHead(): void {
  document.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
}

function dismiss(): void {
  told.value = null;
  toHead();
}

/** What was done, for those who see it and those who hear it. It stays until the page is left. */
export function Told() {
  const now = told.value;
  const here = now !== null && now.path === path.value;
  return (
    <div role="status" class="done">
      {here && (
        <p class={now.bad ? "notice bad" : "notice good"}>
          <span aria-hidden="true">{now.bad ? "▲ " : "✓ "}</span>
          {now.text}
          <button type="button" class="plain" onClick={dismiss}>
            Dismiss
          </button>
        </p>
      )}
    </div>
  );
}

/** Something to do, with what is told when it is done. */
type Work = () => string | void | Promise<string | void>;

interface Doing {
  busy: boolean;
  refused: Error | undefined;
  run: (what: Work) => Promise<void>;
}

/** Does one thing at a time and keeps why it was refused. */
export function useDoing(): Doing {
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<Error>();
  const gone = useRef(false);
  const close = useClose();
  useEffect(() => () => void (gone.current = true), []);
  const run = async (what: Work): Promise<void> => {
    if (busy) return;
    setBusy(true);
    setRefused(undefined);
    try {
      const text = await what();
      if (typeof text !== "string") return; // It was a step on the way.
      close();
      say(text);
      acted.value++;
    } catch (e) {
      const error = e instanceof Error ? e : new Error(String(e));
      if (!(error instanceof Mistyped)) acted.value++; // A part of it may be done.
      if (gone.current) say(sentence(error.message), true); // The dialog was closed meanwhile.
      else setRefused(error);
    } finally {
      setBusy(false);
    }
  };
  return { busy, refused, run };
}

/** Why something was not done, or not said if it was only asked: the broker's sentence, and the command that gives a missing right. */
export function Refusal({ of, asks }: { of: Error | undefined; asks?: boolean }) {
  const acl = of instanceof Refused ? of.problem.missingAcl : undefined;
  return (
    <div role="alert">
      {of && (
        <div class="notice bad">
          <p>
            <span aria-hidden="true">▲ </span>
            {of instanceof Refused || of instanceof Mistyped ? sentence(of.message) : `The broker does not answer. ${asks ? "Nothing was done." : "It is not known whether this was done."}`}
          </p>
          {acl?.command && (
            <>
              <p>This gives the right:</p>
              <Command>{acl.command}</Command>
            </>
          )}
        </div>
      )}
    </div>
  );
}

interface Formed {
  verb: string;
  danger?: boolean;
  ready?: boolean;
  /** Something has to be typed first. */
  typed?: boolean;
  /** It only asks the broker, which does nothing yet. */
  asks?: boolean;
  back?: () => void;
  submit: Work;
}

/** The fields of a dialog with the button that does it, and one that does not. */
export function Form({ verb, danger, ready = true, typed, asks, back, submit, children }: Children & Formed) {
  const { busy, refused, run } = useDoing();
  const close = useClose();
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    // It takes the place of the step before, and what had the focus there is gone.
    const at = document.activeElement;
    if (at !== null && at !== document.body) return;
    (form.current?.querySelector<HTMLElement>("[autofocus]") ?? form.current?.querySelector<HTMLElement>("input, select, textarea, button"))?.focus();
  }, []);
  return (
    <form
      ref={form}
      onSubmit={(e) => {
        e.preventDefault();
        if (ready) void run(submit);
      }}
    >
      {children}
      <Refusal of={refused} asks={asks ?? false} />
      <div class="acts end">
        <button type="button" class="act" autoFocus={danger && !typed} onClick={back ?? close}>
          {back ? "Back" : "Cancel"}
        </button>
        <button type="submit" class={danger ? "act danger" : "act first"} disabled={!ready} aria-disabled={busy || undefined}>
          {busy ? "Asking the broker …" : verb}
        </button>
      </div>
    </form>
  );
}
