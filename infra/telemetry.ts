import pino from 'pino'

export type Logger = pino.Logger

// Fields that may contain a secret or text typed by a person. Their values are redacted.
const redactedPaths = [
  'authorization',
  'cookie',
  'token',
  'secret',
  'key',
  'password',
  'payload',
  'body',
  'ip',
  'ip_address',
].flatMap((name) => [name, `*.${name}`, `req.headers.${name}`])

export function createLogger(
  level: pino.LevelWithSilent,
  destination?: pino.DestinationStream,
): Logger {
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: errorFields },
    hooks: {
      // Without a message, pino would use the error's, which may quote a value.
      logMethod(args, method) {
        const [error]: unknown[] = args
        if (args.length === 1 && error instanceof Error)
          method.apply(this, [{ err: error }, error.name])
        else method.apply(this, args)
      },
    },
    redact: { paths: redactedPaths, censor: '[redacted]' },
  }
  return destination ? pino(options, destination) : pino(options)
}

export interface LoggedError {
  name: string
  message: string
  code?: string
  stack?: string
  cause?: LoggedError
}

/**
 * Returns the loggable fields of an error; null for undefined or null. Other fields are left out, because a driver's
 * error contains the failed row as `detail`, `where` or parameters.
 */
export function errorFields(error: unknown, depth = 0): LoggedError | null {
  if (!(error instanceof Error))
    return error === undefined || error === null ? null : { name: typeof error, message: '' }
  const { name, stack } = error
  const code = 'code' in error && error.code !== undefined ? { code: String(error.code) } : {}
  const cause = depth < 4 && error.cause !== undefined ? errorFields(error.cause, depth + 1) : null
  const frames = stack?.slice(stack.search(/^ +at /m)).trimEnd()
  return {
    name,
    message: withoutValue(error),
    ...code,
    ...(frames ? { stack: frames } : {}),
    ...(cause ? { cause } : {}),
  }
}

// Removes the value that Postgres's data exceptions (class 22) quote: `invalid input syntax for type integer: "..."`.
function withoutValue(error: Error): string {
  const isDataException = 'code' in error && /^22[0-9A-Z]{3}$/.test(String(error.code))
  return isDataException ? error.message.replace(/".*"/s, '"..."') : error.message
}
