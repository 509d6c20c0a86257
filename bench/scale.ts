/** How much each measure does: enough to be steady, little enough that all of it stays under nine minutes. */
export interface Scale {
  rounds: number
  documents: number
  batchesPerDocument: number
  opens: number
  /** Sessions of the memory measure, by log. */
  sessions: { embedded: number; kafka: number }
  handOffs: number
  reads: number
  /** Seconds at half of the peak rate. */
  halfPeakSeconds: number
  rebuilds: number
  logSeconds: number
}

export const fullScale: Scale = {
  rounds: 3,
  documents: 512,
  batchesPerDocument: 16,
  opens: 4096,
  sessions: { embedded: 10_000, kafka: 2000 },
  handOffs: 200,
  reads: 6000,
  halfPeakSeconds: 12,
  rebuilds: 3,
  logSeconds: 3,
}

/** To see that everything runs; its numbers say little. */
export const quickScale: Scale = {
  rounds: 1,
  documents: 64,
  batchesPerDocument: 8,
  opens: 256,
  sessions: { embedded: 200, kafka: 100 },
  handOffs: 20,
  reads: 500,
  halfPeakSeconds: 3,
  rebuilds: 1,
  logSeconds: 1,
}
