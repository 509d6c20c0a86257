import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

// Measured from outside by Linux's /proc (proc(5)), so that the measured program needs no code for it.
const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK']).toString())

/** Microseconds of processor time, user and system, that the process used so far; 0 for one that is gone. */
export function cpuMicros(pid: number): number {
  const fields = statFields(pid)
  return micros(Number(fields[11] ?? 0) + Number(fields[12] ?? 0))
}

/** The same for a process and all below it, ended ones included. */
export function treeCpuMicros(root: number): number {
  return processTree(root).reduce((sum, pid) => sum + cpuMicros(pid) + endedCpuMicros(pid), 0)
}

/** The same for what the process started and has ended. */
export function endedCpuMicros(pid = process.pid): number {
  const fields = statFields(pid)
  return micros(Number(fields[13] ?? 0) + Number(fields[14] ?? 0))
}

function micros(ticks: number): number {
  return (ticks / ticksPerSecond) * 1e6
}

/** The fields of /proc/PID/stat from the third on: the second, the name, may hold spaces. */
function statFields(pid: number): string[] {
  const text = readProc(pid, 'stat')
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}

function processTree(root: number): number[] {
  const parents = new Map(allPids().map((pid) => [pid, Number(statFields(pid)[1] ?? 0)]))
  const isBelow = (pid: number): boolean => {
    for (let at: number | undefined = pid; at; at = parents.get(at)) if (at === root) return true
    return false
  }
  return [...parents.keys()].filter(isBelow)
}

function allPids(): number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger)
}

/** Resident memory now and its peak since the last resetPeak, in bytes. */
export function memory(pid: number): { resident: number; peak: number } {
  const status = readProc(pid, 'status')
  const kilobytes = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0)
  return { resident: kilobytes('VmRSS') * 1024, peak: kilobytes('VmHWM') * 1024 }
}

/** Sets the process's peak memory to what it uses now. */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

function readProc(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8')
  } catch {
    return ''
  }
}
