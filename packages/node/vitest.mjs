// For Vitest's globalSetup: one broker for all tests, at inject('kafkaBrokers').
// KAFKA_BROKERS has the same, with commas.

import { startBroker } from './index.mjs';

export default async function setup(project) {
  const broker = await startBroker();
  process.env.KAFKA_BROKERS = broker.bootstrapServers;
  project.provide('kafkaBrokers', broker.brokers);
  return () => broker.stop();
}
