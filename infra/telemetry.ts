import pino from 'pino'

export type Logger = pino.Logger

// Names under which a secret or something typed by a person could travel; a log line shows that it was there.
const redacted = [
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

/** JSON lines on `destination` (default stdout): time, level, and the fields given. */
export function createLogger(level: pino.LevelWithSilent, destination?: pino.DestinationStream): Logger {
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: redacted, censor: '[redacted]' },
  }
  return destination ? pino(options, destination) : pino(options)
}
