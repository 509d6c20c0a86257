import { runPeriodically } from '../flow/periodic.ts'
import type { Logger } from '../telemetry.ts'
import type { Applied } from './applied.ts'

interface Followed {
  projection: string
  /** For the log, in the plural. */
  what: string
  read(): Promise<void>
}

const everyMs = 15_000

/** Reads every 15 seconds, and whenever the projection has changed. Resolves once it was read. */
export async function followProjection(
  { applied, logger }: { applied: Pick<Applied, 'onChange'>; logger: Logger },
  { projection, what, read }: Followed,
): Promise<{ stop(): Promise<void> }> {
  await read()
  const following = runPeriodically({
    intervalMs: everyMs,
    work: () => read().then(() => false),
    onError: (err) => logger.warn({ err }, `${what} were not read; the next poll tries again`),
  })
  const stopListening = applied.onChange(projection, following.wake)
  return {
    async stop() {
      stopListening()
      await following.stop()
    },
  }
}
