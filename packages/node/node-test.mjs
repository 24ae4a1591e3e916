import hooks from './node-test.cjs';

export const { useBroker } = hooks;
