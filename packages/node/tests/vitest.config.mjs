export default { test: { include: ['with.vitest.mjs'], globalSetup: ['muster-broker/vitest'], testTimeout: 60_000 } };
