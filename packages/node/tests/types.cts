import muster = require('muster-broker');

export const broker: Promise<muster.Broker> = muster.startBroker({ data: 'folder' });
