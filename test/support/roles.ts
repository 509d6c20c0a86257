import path from 'node:path'
import { projections } from '../../services/server/dependencies.ts'
import { allRoles, type Role } from '../../services/server/roles.ts'
import { type Owner, operator } from './cluster.ts'
import { eventually } from './eventually.ts'
import { type ServerProcess, startServerProcess } from './server-process.ts'

/** Processes of the server, one per role. */
export interface RoleProcesses {
  url(role: Role): string
  /**
   * Starts another process of the role, by default of this clone's program, sends requests there, and then ends the old
   * one as a deployment does.
   */
  replace(role: Role, program?: string): Promise<void>
  /** Kills the process with SIGKILL and starts another. */
  kill(role: Role): Promise<void>
  /** Returns the last output of each process, for failed tests. */
  lastWords(): string
  stop(): Promise<void>
}

/** Returns the path of the CLI in a clone. */
export const mainOf = (program: string): string => path.join(program, 'services/cli/main.ts')

/** Starts all roles. `program` is the root of a clone; default: this one. */
export async function startRoles(
  settings: Record<string, string>,
  { program }: { program?: string | undefined } = {},
): Promise<RoleProcesses> {
  const processes = new Map<Role, ServerProcess>()
  const start = (role: Role, from: string | undefined) =>
    startServerProcess(['serve', '--roles', role], {
      ...settings,
      ...(from && { PROGRAM: mainOf(from) }),
    })
  const of = (role: Role) => {
    const process = processes.get(role)
    if (!process) throw new Error(`no process of ${role}`)
    return process
  }
  const stop = async () => {
    await Promise.all([...processes.values()].map((one) => one.end('SIGTERM')))
  }
  try {
    for (const role of allRoles) processes.set(role, await start(role, program))
  } catch (error) {
    await stop()
    throw error
  }
  return {
    url: (role) => of(role).baseUrl,
    async replace(role, from) {
      const old = of(role)
      processes.set(role, await start(role, from))
      const code = await old.end('SIGTERM')
      if (code !== 0) throw new Error(`${role} ended with ${code}:\n${old.output()}`)
    },
    async kill(role) {
      await of(role).end('SIGKILL')
      processes.set(role, await start(role, program))
    },
    lastWords: () =>
      [...processes].map(([role, one]) => `${role}:\n${one.output().slice(-3000)}`).join('\n'),
    stop,
  }
}

/** Names that `tidegate rebuild` accepts. */
export const rebuildable = [...projections.map(({ name }) => name), 'scoring']

/** Runs a rebuild. Throws the command's output if it differs. */
export async function rebuildIsEqual(
  settings: Record<string, string>,
  name: string,
): Promise<void> {
  const { code, stdout, stderr } = await operator(settings).cli(['rebuild', name])
  if (code !== 0) throw new Error(`${stdout}${stderr}`)
}

export interface Readback {
  /** Acknowledged sessions that are missing, or whose decision is not final. */
  lost: string[]
  /** Number of listed sessions. */
  listed: number
}

/** Waits for pending events, and compares what backends read with the acknowledged sessions. */
export async function readBack(api: string, owner: Owner, finished: string[]): Promise<Readback> {
  const headers = { authorization: `Bearer ${owner.secret.key}` }
  const isThere = async (id: string) => {
    const answer = await fetch(`${api}/v1/sessions/${id}`, { headers })
    const { data } = JSON.parse(await answer.text())
    return answer.status === 200 && data?.decision?.decision_status === 'final'
  }
  let missing = finished
  await eventually(
    async () => {
      const found = await Promise.all(missing.map(isThere))
      missing = missing.filter((_, i) => !found[i])
      if (missing.length > 0) throw new Error('not all yet')
    },
    { timeoutMs: 60_000, intervalMs: 500 },
  ).catch(() => {})
  return { lost: missing, listed: await countListed(api, headers) }
}

async function countListed(api: string, headers: Record<string, string>): Promise<number> {
  let count = 0
  for (let cursor = ''; ; ) {
    const answer = await fetch(`${api}/v1/sessions?limit=100${cursor && `&cursor=${cursor}`}`, {
      headers,
    })
    if (answer.status !== 200) throw new Error(`GET /v1/sessions: ${answer.status}`)
    const { data, pagination } = JSON.parse(await answer.text())
    count += data.length
    if (!pagination.has_more) return count
    cursor = pagination.next_cursor
  }
}
