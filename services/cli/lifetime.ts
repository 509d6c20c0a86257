import type { Logger } from '../../infra/telemetry.ts'
import { errorMessage } from '../../infra/thrown.ts'

export interface LifetimeOptions {
  start: (undo: AsyncDisposableStack) => Promise<void>
  /** Milliseconds from the signal, or from the failure of the start, to the end of the process, whatever hangs. */
  stopWithinMs: number
  logger: Logger
  /** Default: the message on standard error. */
  onFailure?: (error: unknown) => void
}

const echoMs = 1000

/** Calls `first` at SIGTERM or SIGINT, and `later` at each that comes one second after it or more. */
export function onStopSignals(first: () => void, later: () => void): void {
  let since: number | undefined
  const onSignal = () => {
    // A single Ctrl-C in a terminal arrives twice: from the terminal, and passed on by npm.
    if (since !== undefined && performance.now() - since > echoMs) return later()
    if (since !== undefined) return
    since = performance.now()
    first()
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}

/**
 * A server's whole life: starts it, waits for SIGTERM or SIGINT, undoes the start in reverse, and ends the process.
 * The exit code is 1 when the start or the stop failed, else `process.exitCode`, or 0. A second signal, one second
 * later or more, ends it at once.
 */
export async function runUntilSignal(options: LifetimeOptions): Promise<never> {
  const {
    start,
    stopWithinMs,
    logger,
    onFailure = (error) => console.error(errorMessage(error)),
  } = options
  const undo = new AsyncDisposableStack()
  const { promise: signalled, resolve: onSignal } = Promise.withResolvers<void>()
  const beginStop = () => {
    exitAfter(stopWithinMs, logger)
    onSignal()
  }
  onStopSignals(beginStop, () => process.exit(1))
  const failure = await start(undo).then(
    () => undefined,
    (error: unknown) => ({ error }),
  )
  if (failure) {
    onFailure(failure.error)
    exitAfter(stopWithinMs, logger)
  } else await signalled
  const ended = await undo.disposeAsync().then(
    () => true,
    (err: unknown) => {
      logger.error({ err }, 'shutdown failed')
      return false
    },
  )
  process.exit(ended && !failure ? process.exitCode : 1)
}

function exitAfter(ms: number, logger: Logger): void {
  setTimeout(() => {
    logger.error({ ms }, 'shutdown timed out; exiting')
    process.exit(1)
  }, ms)
}
