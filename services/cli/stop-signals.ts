import type { Logger } from '../../infra/telemetry.ts'
import { errorMessage } from '../../infra/thrown.ts'

export interface RunUntilSignalOptions {
  start: (undo: AsyncDisposableStack) => Promise<void>
  /** The process exits this long after the signal or a failed start, even if the shutdown hangs. */
  stopWithinMs: number
  logger: Logger
  /** Default: prints the message on standard error. */
  onFailure?: (error: unknown) => void
}

const duplicateSignalMs = 1000

/** Calls `onFirst` at the first SIGTERM or SIGINT, and `onRepeat` at each one that comes over a second later. */
export function onStopSignals(onFirst: () => void, onRepeat: () => void): void {
  let firstAt: number | undefined
  const onSignal = () => {
    // A single Ctrl-C can arrive twice: from the terminal, and forwarded by npm.
    if (firstAt !== undefined && performance.now() - firstAt > duplicateSignalMs) return onRepeat()
    if (firstAt !== undefined) return
    firstAt = performance.now()
    onFirst()
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}

/**
 * Starts a server, waits for SIGTERM or SIGINT, disposes what the start added to `undo`, and exits the process. The exit
 * code is 1 if the start or the shutdown failed, otherwise `process.exitCode` or 0. A second signal exits immediately.
 */
export async function runUntilSignal(options: RunUntilSignalOptions): Promise<never> {
  const {
    start,
    stopWithinMs,
    logger,
    onFailure = (error) => console.error(errorMessage(error)),
  } = options
  const undo = new AsyncDisposableStack()
  const { promise: signaled, resolve: onSignal } = Promise.withResolvers<void>()
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
  } else await signaled
  const isShutDown = await undo.disposeAsync().then(
    () => true,
    (err: unknown) => {
      logger.error({ err }, 'shutdown failed')
      return false
    },
  )
  process.exit(isShutDown && !failure ? process.exitCode : 1)
}

function exitAfter(ms: number, logger: Logger): void {
  setTimeout(() => {
    logger.error({ ms }, 'shutdown timed out; exiting')
    process.exit(1)
  }, ms)
}
