'use strict';

// For Jest's globalSetup: one broker for all tests, at process.env.KAFKA_BROKERS.

const { startBroker } = require('./index.cjs');

module.exports = async () => {
  const broker = await startBroker();
  process.env.KAFKA_BROKERS = broker.bootstrapServers;
  globalThis.__musterBroker = broker;
};
