module.exports = {
  globalSetup: 'muster-broker/jest-setup',
  globalTeardown: 'muster-broker/jest-teardown',
  testMatch: ['**/with.jest.cjs'],
  moduleFileExtensions: ['cjs', 'js', 'json'],
  testTimeout: 60_000,
};
