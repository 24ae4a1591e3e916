import { expect, inject, test } from 'vitest';

import client from './client.cjs';

test('Vitest gives the broker to tests', async () => {
  const brokers = inject('kafkaBrokers');
  expect(process.env.KAFKA_BROKERS).toBe(brokers[0]);
  expect(await client.roundTrip(brokers, 'vitest')).toBe('hello');
});
