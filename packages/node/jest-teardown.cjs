'use strict';

// For Jest's globalTeardown.

module.exports = async () => {
  await globalThis.__musterBroker?.stop();
};
