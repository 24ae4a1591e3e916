import type { Broker, BrokerOptions } from './index.mjs';

/** Starts a broker before the tests and stops it after them. What it returns gives the broker to a test. */
export function useBroker(options?: BrokerOptions): () => Broker;
