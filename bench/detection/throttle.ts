import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

const root = '/sys/fs/cgroup'
// Short, so that the machine is slow rather than paused ten times per second.
const periodUs = 20_000
// A twentieth of a CPU.
const shareUs = periodUs / 20

/** Linux control group for a program and its children. */
export interface SlowGroup {
  /** Returns a command that runs the given one in the group. */
  within(command: string[]): string[]
  /** Limits all processes of the group together to a twentieth of a CPU. */
  slowDown(): void
  remove(): Promise<void>
}

export function createSlowGroup(name: string): SlowGroup {
  const isFirstVersion = existsSync(path.join(root, 'cpu/cgroup.procs'))
  const folder = path.join(
    root,
    isFirstVersion ? 'cpu' : '',
    `tidegate-eval-${process.pid}-${name}`,
  )
  mkdirSync(folder)
  const limits: Record<string, string> = isFirstVersion
    ? { 'cpu.cfs_period_us': `${periodUs}`, 'cpu.cfs_quota_us': `${shareUs}` }
    : { 'cpu.max': `${shareUs} ${periodUs}` }
  return {
    within: (command) => [
      'sh',
      '-c',
      `echo $$ > ${folder}/cgroup.procs && exec "$@"`,
      'sh',
      ...command,
    ],
    slowDown() {
      for (const [file, value] of Object.entries(limits))
        writeFileSync(path.join(folder, file), value)
    },
    async remove() {
      // Killed processes leave the group a moment later.
      for (let attempt = 0; attempt < 50; attempt++) {
        try {
          return rmdirSync(folder)
        } catch {
          await delay(100)
        }
      }
    },
  }
}
