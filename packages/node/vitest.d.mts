/** Vitest's globalSetup: starts a broker for all tests. */
export default function setup(project: { provide(key: string, value: unknown): void }): Promise<() => Promise<void>>;
