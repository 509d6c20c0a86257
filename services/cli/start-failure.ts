import { WrongLog } from '../../infra/event-store/bound-log.ts'
import { LogUnavailable } from '../../infra/log/port.ts'
import { MayNotMakeTables, UnreleasedTables } from '../../infra/postgres/migrations.ts'
import { isConnectionError, isRefusedCertificate } from '../../infra/postgres/pool.ts'
import { BehindPooler } from '../../infra/postgres/pooler.ts'
import { createLogger } from '../../infra/telemetry.ts'

/** One JSON line, whatever LOG_LEVEL is: nobody reads a server's start but through its log. */
export function tellStartFailure(error: unknown): void {
  tellFailureOf('the server did not start', error)
}

/** The same of `tidegate migrate`, which runs beside servers and is read as they are. */
export function tellMigrationFailure(error: unknown): void {
  tellFailureOf('the stores were not prepared', error)
}

function tellFailureOf(what: string, error: unknown): void {
  const message = error instanceof Error ? error.message : String(error)
  createLogger('fatal').fatal({ err: error, hint: hintOf(error) }, `${what}: ${message}`)
}

/** DATA_DIR is no folder that this user may write to. */
export class DataDirUnusable extends Error {
  constructor(dataDir: string, { cause }: { cause: unknown }) {
    super(`DATA_DIR: ${dataDir} cannot be written: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    })
  }
}

const tellingErrors = [WrongLog, MayNotMakeTables, UnreleasedTables, BehindPooler, DataDirUnusable]

/** For who started it by hand: two lines, the second says which setting to look at. */
export function startFailureText(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return `The server did not start: ${message}\n  ${hintOf(error)}`
}

function hintOf(error: unknown): string {
  if (tellingErrors.some((kind) => error instanceof kind)) return 'the message says the way out'
  if (isRefusedCertificate(error))
    return 'sslmode=require verifies, too: name the authority of the database by sslrootcert in DATABASE_URL'
  if (error instanceof LogUnavailable) return 'the log does not answer: see KAFKA_BROKERS and KAFKA_*'
  if (isConnectionError(error)) return 'the database does not answer: see DATABASE_URL'
  return '`tidegate config check` says what is wrong with the settings'
}
