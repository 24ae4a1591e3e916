/// <reference lib="esnext.disposable" />

export interface BrokerOptions {
  /** Kafka's broker settings, as { 'num.partitions': 6 }. */
  settings?: Record<string, string | number | boolean>;
  /** A folder to keep records in instead of memory. */
  data?: string;
  /** Turns on the console and the HTTP API, at httpUrl. */
  http?: boolean;
  /** How many milliseconds the start may take; 60,000 by default. */
  timeout?: number;
}

export interface TopicOptions {
  /** 1 by default. */
  partitions?: number;
  /** By default one that there never was. */
  name?: string;
  /** Kafka's topic settings, as { 'retention.ms': 1000 }. */
  settings?: Record<string, string | number | boolean>;
}

/** A running broker. `await using` stops it at the end of the block. */
export interface Broker {
  /** What KafkaJS and others take as brokers. */
  readonly brokers: string[];
  /** The address of the first listener, as host:port. */
  readonly bootstrapServers: string;
  /** The advertised address of each listener, by its name. */
  readonly listeners: Record<string, string>;
  /** Where the console and the HTTP API are; empty without the option http. */
  readonly httpUrl: string;
  readonly pid: number;
  readonly version: string;
  /** The last lines of the broker's log, also after it has stopped. */
  readonly log: string;
  /** Creates a topic and returns its name. */
  topic(options?: TopicOptions): Promise<string>;
  /** Stops the broker. What it kept in memory is gone. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a broker in memory, on a free port of 127.0.0.1. Clients can connect once it is there. */
export function startBroker(options?: BrokerOptions): Promise<Broker>;

/** The path of the program. */
export function binary(): string;
