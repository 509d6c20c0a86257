import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { allRoles } from '../../services/server/roles.ts'
import type { Environment } from '../environment.ts'
import type { Measurement } from '../measurement.ts'
import { cpuMicros, endedCpuMicros } from '../procfs.ts'
import { interleave, type Turns } from '../rounds.ts'
import { spreadOf } from '../stats.ts'

const root = path.resolve(import.meta.dirname, '../..')

/** Measures the time of `tidegate --help`, and of starting a server with all roles on an existing database. */
export async function measureStartup(
  environment: Environment,
  turns: Turns,
): Promise<Measurement[]> {
  const { help = [], serve = [] } = await interleave(turns, [
    { name: 'help', run: printHelp },
    { name: 'serve', run: () => startServer(environment) },
  ])
  const shared = { log: environment.logName, unit: 'ms' } as const
  const numbers = (starts: Start[]) => ({
    value: spreadOf(starts.map(({ wallMs }) => wallMs)),
    details: { 'CPU ms': spreadOf(starts.map(({ cpuMs }) => cpuMs)).median },
  })
  const aim = { direction: 'at most', value: 250 } as const
  return [
    { name: 'start-up: `tidegate --help`', ...shared, ...numbers(help), aim },
    { name: 'start-up: `tidegate serve` to ready, all roles', ...shared, ...numbers(serve) },
  ]
}

interface Start {
  wallMs: number
  cpuMs: number
}

/** Starts the command without npm, which takes longer than the command. */
async function printHelp(): Promise<Start> {
  const [began, before] = [performance.now(), endedCpuMicros()]
  const args = ['--', 'services/cli/main.ts', '--help']
  const [code] = await once(spawn(process.execPath, args, { cwd: root, stdio: 'ignore' }), 'exit')
  if (code !== 0) throw new Error(`--help ended with ${code}`)
  return { wallMs: performance.now() - began, cpuMs: (endedCpuMicros() - before) / 1000 }
}

async function startServer(environment: Environment): Promise<Start> {
  const began = performance.now()
  const child = await environment.startRoles(...allRoles)
  const start = { wallMs: performance.now() - began, cpuMs: cpuMicros(child.pid) / 1000 }
  await child.stop()
  return start
}
