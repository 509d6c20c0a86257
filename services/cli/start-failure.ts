import { InvalidSettings } from '../../infra/config.ts'
import { LogUnavailable } from '../../infra/log/port.ts'
import { isConnectionError, isRefusedCertificate } from '../../infra/postgres/pool.ts'
import { createLogger } from '../../infra/telemetry.ts'
import { errorMessage } from '../../infra/thrown.ts'

/**
 * Logs one JSON line, whatever LOG_LEVEL is, because the start of a server, and `tidegate migrate` before it, are read
 * through their logs. `what` says what failed, as "the server did not start".
 */
export function logStartFailure(what: string, error: unknown): void {
  createLogger('fatal').fatal(
    { err: error, hint: hintOf(error) },
    `${what}: ${errorMessage(error)}`,
  )
}

/** DATA_DIR is no folder that this user may write to. */
export class DataDirUnusable extends Error {
  constructor(dataDir: string, { cause }: { cause: unknown }) {
    super(`DATA_DIR: ${dataDir} cannot be written: ${errorMessage(cause)}`, { cause })
  }
}

/** The message for who started it by hand, and a line that says which setting to check. */
export function startFailureText(error: unknown): string {
  const hint = hintOf(error)
  return `The server did not start: ${errorMessage(error)}${hint ? `\n  ${hint}` : ''}`
}

function hintOf(error: unknown): string | undefined {
  if (isRefusedCertificate(error))
    return 'sslmode=require verifies, too: name the authority of the database by sslrootcert in DATABASE_URL'
  if (error instanceof LogUnavailable)
    return 'the log does not answer: see KAFKA_BROKERS and KAFKA_*'
  if (isConnectionError(error)) return 'the database does not answer: see DATABASE_URL'
  if (error instanceof InvalidSettings)
    return '`tidegate config check` tries settings without a start'
  return undefined
}
