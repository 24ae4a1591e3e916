// Compiled, not run: the types are as a strict project wants them.

import { startBroker, type Broker } from 'muster-broker';
import { useBroker } from 'muster-broker/node-test';
import setup from 'muster-broker/vitest';

export async function use(): Promise<string> {
  await using broker: Broker = await startBroker({ settings: { 'num.partitions': 3 }, http: true });
  const brokers: string[] = broker.brokers;
  return (await broker.topic({ partitions: 3 })) + brokers[0];
}

export const broker: () => Broker = useBroker();
export const vitest: typeof setup = setup;
