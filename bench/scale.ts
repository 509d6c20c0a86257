import type { Turns } from './rounds.ts'

/** Size of each measure: large enough for stable numbers, small enough for a run of ten minutes. */
export interface Scale {
  /** Rounds of the comparisons with the floor. */
  turns: Turns
  documents: number
  batchesPerDocument: number
  opens: number
  /** Requests of the guard measure. A difference of a few percent needs many requests in many rounds. */
  guarded: number
  guardTurns: Turns
  /** Sessions of the memory measure, by log. */
  sessions: { embedded: number; kafka: number }
  /** Sessions of the peak measure at each concurrency. */
  peakSessions: number
  peakRounds: number
  /** Sessions of each level of the cost measure, and of each split of the roles. */
  costSessions: number
  handOffs: number
  reads: number
  /** Runs of requests without JavaScript, and the duration of each. */
  requestRounds: number
  requestSeconds: number
  /** Seconds at half of the peak rate. */
  halfPeakSeconds: number
  /** Seconds at three times the peak rate. */
  overloadSeconds: number
  rebuilds: Turns
  hostileRounds: number
  /** Rounds of the comparisons with other packages. */
  peerTurns: Turns
  /** Webhook deliveries of a round. */
  deliveries: number
  /** Sessions per round whose records are compared, and the duration of a round of appends. */
  recordSessions: number
  appendSeconds: number
  /** Runs of decisions with webhooks, and the duration of each. */
  latencyRounds: number
  webhookSeconds: number
  /** Runs of the log measure, and the duration of each. */
  logRounds: number
  logSeconds: number
}

export const fullScale: Scale = {
  turns: { rounds: 5, warmUps: 2 },
  documents: 256,
  batchesPerDocument: 16,
  opens: 4096,
  guarded: 8192,
  guardTurns: { rounds: 15, warmUps: 2 },
  sessions: { embedded: 10_000, kafka: 1000 },
  peakSessions: 1000,
  peakRounds: 3,
  costSessions: 600,
  handOffs: 200,
  reads: 6000,
  requestRounds: 3,
  requestSeconds: 20,
  halfPeakSeconds: 10,
  overloadSeconds: 10,
  rebuilds: { rounds: 3, warmUps: 1 },
  hostileRounds: 3,
  peerTurns: { rounds: 5, warmUps: 1 },
  deliveries: 3000,
  recordSessions: 200,
  appendSeconds: 2,
  latencyRounds: 3,
  webhookSeconds: 3,
  logRounds: 3,
  logSeconds: 3,
}

/** Smoke run, whose numbers are not meaningful. */
export const quickScale: Scale = {
  turns: { rounds: 1, warmUps: 1 },
  documents: 64,
  batchesPerDocument: 8,
  opens: 256,
  guarded: 1024,
  guardTurns: { rounds: 1, warmUps: 1 },
  sessions: { embedded: 200, kafka: 100 },
  peakSessions: 200,
  peakRounds: 1,
  costSessions: 200,
  handOffs: 20,
  reads: 500,
  requestRounds: 1,
  requestSeconds: 2,
  halfPeakSeconds: 3,
  overloadSeconds: 5,
  rebuilds: { rounds: 1, warmUps: 1 },
  hostileRounds: 1,
  peerTurns: { rounds: 1, warmUps: 1 },
  deliveries: 500,
  recordSessions: 50,
  appendSeconds: 0.5,
  latencyRounds: 1,
  webhookSeconds: 2,
  logRounds: 1,
  logSeconds: 1,
}
