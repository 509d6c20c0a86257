import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/** Resolves when the child has exited; immediately if it has exited already or never started. */
export async function endChild(
  child: ChildProcess,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<void> {
  const runs = child.exitCode === null && child.signalCode === null
  if (runs && child.kill(signal)) await once(child, 'exit')
}
