import { spawn } from 'node:child_process'
import { once } from 'node:events'

export interface Lock {
  release(): Promise<void>
}

interface LockOptions {
  /** Many may hold it at once, and then nobody holds it alone. */
  shared?: boolean
  /** Whether to wait for who holds it. */
  wait?: boolean
}

/**
 * Locks a file of this machine for this process and its end, however it ends. Resolves with undefined where somebody
 * else holds it and `wait` is false.
 */
export async function lockFile(
  file: string,
  { shared = false, wait = true }: LockOptions = {},
): Promise<Lock | undefined> {
  const flags = [shared ? '--shared' : '--exclusive', ...(wait ? [] : ['--nonblock'])]
  // `cat` holds it, and ends with its input: when it is closed here, or with this process.
  const holder = spawn('flock', [...flags, file, 'sh', '-c', 'echo held; exec cat'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const ended = once(holder, 'close')
  const isHeld = await Promise.race([
    once(holder.stdout, 'data').then(() => true),
    ended.then(() => false),
  ])
  if (isHeld) {
    return {
      async release() {
        holder.stdin.end()
        await ended
      },
    }
  }
  const [code] = await ended
  if (!wait && code === 1) return undefined
  throw new Error(`${file} could not be locked: flock ended with ${code}`)
}
