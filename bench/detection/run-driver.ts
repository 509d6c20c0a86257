import { hash } from 'node:crypto'
import type { Outcome, Stage } from './cases.ts'
import { startProgram } from './program.ts'
import type { Phase } from './site.ts'

interface DriverRun {
  command: string[]
  settings: Record<string, unknown>
  stage: Stage
  onOutcome: (outcome: Outcome) => void
  acts: boolean
}

/** Starts the driver, lets it act after the page was judged on load, and stops it. */
export async function runDriver({
  command,
  settings,
  stage,
  onOutcome,
  acts,
}: DriverRun): Promise<void> {
  const env = { ...surroundings(stage), EVAL_CASE: JSON.stringify(settings) }
  const program = startProgram({ command, folder: stage.folder, env })
  try {
    onOutcome(await Promise.race([judged(stage, 'load'), program.ended]))
    if (!acts) return
    program.tell('act')
    onOutcome(await Promise.race([judged(stage, 'act'), program.ended]))
  } finally {
    await program.stop()
  }
}

/** Waits for the page to hand the session off, and returns its outcome. */
export async function judged({ visit, tidegate, signal }: Stage, phase: Phase): Promise<Outcome> {
  const posted = await Promise.race([visit.posted(phase), aborted(signal, phase)])
  const { sessionId, botd, fpscanner } = posted
  return { ...(await tidegate.judgement(posted)), phase, sessionId, botd, fpscanner }
}

function aborted(signal: AbortSignal, phase: Phase): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  const late = () => reject(new Error(`the page told nothing of "${phase}" in time`))
  if (signal.aborted) late()
  signal.addEventListener('abort', late, { once: true })
  return promise
}

const zones = ['UTC', 'Europe/Berlin', 'America/New_York'] as const

/**
 * Returns the environment variables of a case's programs. The time zone derives from the name, because a common one
 * would reveal this harness.
 */
export function surroundings({ desktop, folder, name }: Stage): Record<string, string> {
  const names = ['XDG_CONFIG_HOME', 'XDG_CACHE_HOME', 'XDG_DATA_HOME']
  const folders = Object.fromEntries(names.map((variable) => [variable, folder]))
  const zone = zones[hash('sha256', name, 'buffer').readUInt16BE() % zones.length] ?? 'UTC'
  // Without a session bus, no services are started that outlive the case.
  const alone = { DBUS_SESSION_BUS_ADDRESS: 'disabled:', NO_AT_BRIDGE: '1' }
  return { ...desktop.env, ...folders, ...alone, TZ: zone, LANG: 'en_US.UTF-8' }
}
