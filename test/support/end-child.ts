import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/** Resolves once it is gone; at once where it has ended before, or never began. */
export async function endChild(
  child: ChildProcess,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<void> {
  const runs = child.exitCode === null && child.signalCode === null
  if (runs && child.kill(signal)) await once(child, 'exit')
}
