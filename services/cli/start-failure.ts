import { InvalidSettings } from '../../infra/config.ts'
import { LogUnavailable } from '../../infra/log/port.ts'
import { isConnectionError, isRefusedCertificate } from '../../infra/postgres/pool.ts'
import { createLogger } from '../../infra/telemetry.ts'
import { errorMessage } from '../../infra/thrown.ts'

/**
 * Reports a failed start, whatever LOG_LEVEL is: readable on a terminal, else one JSON line, because the start of a
 * server, and `tidegate migrate` before it, are read through their logs. `what` is such as "the server did not start".
 */
export function logStartFailure(what: string, error: unknown): void {
  if (process.stdout.isTTY) console.error(startFailureText(error, what))
  else
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

/** Returns the message for a terminal, with a line that names the setting to check. */
export function startFailureText(error: unknown, what = 'the server did not start'): string {
  const hint = hintOf(error)
  const text = `${what}: ${errorMessage(error)}${hint ? `\n  ${hint}` : ''}`
  return text[0]?.toUpperCase() + text.slice(1)
}

function hintOf(error: unknown): string | undefined {
  if (isRefusedCertificate(error))
    return 'sslmode=require verifies the certificate: add sslrootcert=<CA file> to DATABASE_URL'
  if (error instanceof LogUnavailable)
    return 'cannot reach the log: check KAFKA_BROKERS and the other KAFKA_* settings'
  if (isConnectionError(error)) return 'cannot reach the database: check DATABASE_URL'
  if (error instanceof InvalidSettings)
    return 'check settings without starting: `tidegate config check`'
  return undefined
}
