import { InvalidSettings } from '../../infra/config.ts'
import { LogUnavailable } from '../../infra/log/port.ts'
import { isCertificateError, isConnectionError } from '../../infra/postgres/pool.ts'
import { createLogger } from '../../infra/telemetry.ts'
import { errorMessage } from '../../infra/thrown.ts'

/**
 * Prints a failed start, whatever LOG_LEVEL is: text on a terminal, otherwise a JSON log line. `summary` is the start of
 * the message, such as "the server did not start".
 */
export function logStartFailure(error: unknown, summary: string): void {
  if (process.stdout.isTTY) console.error(startFailureText(error, summary))
  else
    createLogger('fatal').fatal(
      { err: error, hint: hintOf(error) },
      `${summary}: ${errorMessage(error)}`,
    )
}

/** Error for a DATA_DIR that is not a folder or not writable. */
export class DataDirUnusable extends Error {
  constructor(dataDir: string, { cause }: { cause: unknown }) {
    super(`DATA_DIR: ${dataDir} cannot be written: ${errorMessage(cause)}`, { cause })
  }
}

/** Returns the message for a terminal, with a second line that says which setting to check. */
export function startFailureText(error: unknown, summary = 'the server did not start'): string {
  const hint = hintOf(error)
  const text = `${summary}: ${errorMessage(error)}${hint ? `\n  ${hint}` : ''}`
  return text[0]?.toUpperCase() + text.slice(1)
}

function hintOf(error: unknown): string | undefined {
  if (isCertificateError(error))
    return 'sslmode=require verifies the certificate: add sslrootcert=<CA file> to DATABASE_URL'
  if (error instanceof LogUnavailable)
    return 'cannot reach the log: check KAFKA_BROKERS and the other KAFKA_* settings'
  if (isConnectionError(error)) return 'cannot reach the database: check DATABASE_URL'
  if (error instanceof InvalidSettings)
    return 'check settings without starting: `tidegate config check`'
  return undefined
}
