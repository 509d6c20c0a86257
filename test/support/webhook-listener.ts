import { createInterface } from 'node:readline'
import { endChild } from './end-child.ts'
import { eventually } from './eventually.ts'
import { spawnProgram } from './program.ts'

/** Line of `listen --json`. */
export interface Seen {
  event_id: string
  type: string
  times_seen: number
  signatures: Record<string, string>
  payload: { id: string; type: string; data: { session?: { id: string } } }
  answered: number
}

export interface Listener {
  url: string
  endpointId: string | undefined
  lines: string[]
  /** Returns the lines printed with --json. */
  seen(): Seen[]
  /** Sends SIGINT, like Ctrl-C. Resolves with the exit code. */
  stop(): Promise<number | null>
}

const running: Listener[] = []

/** Starts `tidegate webhooks listen ...args` and waits until it listens. */
export async function listen(args: string[], dataDir: string): Promise<Listener> {
  const child = spawnProgram(['webhooks', 'listen', ...args], { DATA_DIR: dataDir })
  const lines: string[] = []
  const told: string[] = []
  createInterface(child.stdout).on('line', (line) => lines.push(line))
  createInterface(child.stderr).on('line', (line) => told.push(line))
  const [, url = '', endpointId] = await eventually(() => {
    if (child.exitCode !== null) throw new Error(`listen ended: ${told.join('\n')}`)
    const all = [...told, ...lines].join('\n')
    return /Listening on (\S+?)(?: as (we_\w+))?;/.exec(all) ?? Promise.reject(new Error(all))
  })
  const stop = async () => {
    await endChild(child, 'SIGINT')
    return child.exitCode
  }
  const seen = () => lines.map((line): Seen => JSON.parse(line))
  const listener = { url, endpointId, lines, seen, stop }
  running.push(listener)
  return listener
}

/** Stops listeners that a test left running. */
export async function stopListeners(): Promise<void> {
  await Promise.all(running.splice(0).map((listener) => listener.stop()))
}
