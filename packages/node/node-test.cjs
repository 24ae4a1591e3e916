'use strict';

// For node:test: a broker for the tests of a file or of a describe block.

const { after, before } = require('node:test');
const { startBroker } = require('./index.cjs');

function useBroker(options) {
  const used = {};
  before(async () => {
    used.broker = await startBroker(options);
  });
  after(() => used.broker?.stop());
  return () => used.broker;
}

module.exports = { useBroker };
