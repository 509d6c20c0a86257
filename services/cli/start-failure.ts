import { WrongLog } from '../../infra/event-store/bound-log.ts'
import { LogUnavailable } from '../../infra/log/port.ts'
import { MayNotMakeTables } from '../../infra/postgres/ensure-tables.ts'
import { isConnectionError } from '../../infra/postgres/pool.ts'
import { BehindPooler } from '../../infra/postgres/pooler.ts'
import { createLogger } from '../../infra/telemetry.ts'

/** One JSON line, whatever LOG_LEVEL is: nobody reads a server's start but through its log. */
export function tellStartFailure(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error)
  createLogger('fatal').fatal({ err: error, hint: hintOf(error) }, `the server did not start: ${message}`)
}

/** DATA_DIR is no folder that this user may write to. */
export class DataDirUnusable extends Error {
  constructor(dataDir: string, { cause }: { cause: unknown }) {
    super(`DATA_DIR: ${dataDir} cannot be written: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    })
  }
}

const tellingErrors = [WrongLog, MayNotMakeTables, BehindPooler, DataDirUnusable]

/** For who started it by hand: two lines, the second says which setting to look at. */
export function startFailureText(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return `The server did not start: ${message}\n  ${hintOf(error)}`
}

function hintOf(error: unknown): string {
  if (tellingErrors.some((kind) => error instanceof kind)) return 'the message says the way out'
  if (error instanceof LogUnavailable) return 'the log does not answer: see KAFKA_BROKERS and KAFKA_*'
  if (isConnectionError(error)) return 'the database does not answer: see DATABASE_URL'
  return '`tidegate config check` says what is wrong with the settings'
}
