'use strict';

const { Kafka, logLevel } = require('kafkajs');

/** Writes a record and reads it by a group. */
exports.roundTrip = async (brokers, topic) => {
  const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING });
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic, messages: [{ value: 'hello' }] });
  await producer.disconnect();
  const consumer = kafka.consumer({ groupId: `g-${topic}` });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const value = await new Promise((resolve) => {
    void consumer.run({ eachMessage: async ({ message }) => resolve(String(message.value)) });
  });
  await consumer.disconnect();
  return value;
};
