import { runPeriodically } from '../flow/periodic.ts'
import type { Logger } from '../telemetry.ts'
import type { AppliedOffsets } from './applied.ts'

interface FollowOptions {
  projection: string
  /** A plural noun for log messages, such as `data policies`. */
  label: string
  read(): Promise<void>
}

const intervalMs = 15_000

/** Calls `read` every 15 seconds and on every change of the projection. Resolves after the first call. */
export async function followProjection(
  { applied, logger }: { applied: Pick<AppliedOffsets, 'onChange'>; logger: Logger },
  { projection, label, read }: FollowOptions,
): Promise<{ stop(): Promise<void> }> {
  await read()
  const following = runPeriodically({
    intervalMs,
    work: read,
    onError: (err) => logger.warn({ err }, `failed to read ${label}; retrying`),
  })
  const stopListening = applied.onChange(projection, following.wake)
  return {
    async stop() {
      stopListening()
      await following.stop()
    },
  }
}
