/** A Kafka-compatible broker for tests: a real one, in memory, ready within milliseconds. */
package muster.junit;
