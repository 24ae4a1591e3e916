const { roundTrip } = require('./client.cjs');

test('Jest gives the broker to tests', async () => {
  expect(await roundTrip([process.env.KAFKA_BROKERS], 'jest')).toBe('hello');
});
