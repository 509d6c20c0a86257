import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

const root = '/sys/fs/cgroup'
// Short, so that it is a slow machine and not one that stands still ten times a second.
const periodUs = 20_000
// A twentieth of one processor.
const shareUs = periodUs / 20

/** A control group of the kernel for a program and all that it starts. */
export interface SlowGroup {
  /** The command, run within the group. */
  within(command: string[]): string[]
  /** From now on all of its processes together get a twentieth of a processor. */
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
      // Processes that were ended leave it a moment later.
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
