import broker from './index.cjs';

export const { startBroker, binary } = broker;
