import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Case, kindOf, type Outcome, type Stage } from './cases.ts'
import { openDesktop } from './desktop.ts'
import { nameOf, type Row } from './results.ts'
import { openSite, type Phase } from './site.ts'
import { startTidegate } from './tidegate.ts'

const caseMs = 60_000

interface Matrix {
  cases: Case[]
  seed: string
}

/**
 * Runs the cases one after another against a server of its own, which was taught by Chromium and Firefox before. Every
 * moment of each is a row, failed ones too.
 */
export async function runMatrix({ cases, seed }: Matrix): Promise<Row[]> {
  await using undo = new AsyncDisposableStack()
  const tidegate = await startTidegate({ isTaught: true })
  undo.defer(tidegate.stop)
  const fresh = await startTidegate()
  undo.defer(fresh.stop)
  const site = await openSite({ endpoint: tidegate.url, publishableKey: tidegate.keys.publishable_key })
  undo.defer(site.close)
  const desktop = await openDesktop()
  undo.defer(desktop.close)
  const rows: Row[] = []
  let recordedSession: string | undefined
  for (const [index, each] of cases.entries()) {
    const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-case-'))
    const visit = site.visit(`${index}`)
    const { name } = each
    const own = { name, visit, folder, seed: `${seed}/${name}` }
    const stage = {
      ...own,
      desktop,
      tidegate: each.kind === 'informed-fresh' ? fresh : tidegate,
      recordedSession,
    }
    const { outcomes, error } = await runCase(each, stage)
    recordedSession ??= each.kind === 'person' ? outcomes.find(isAct)?.sessionId : undefined
    const added = rowsOf(each, { outcomes, error, seed: stage.seed })
    for (const row of added) console.log(lineOf(row))
    rows.push(...added)
    // Something that a browser left running may still write there.
    await rm(folder, { recursive: true, force: true, maxRetries: 5 }).catch(() => {})
  }
  return rows
}

const isAct = ({ phase }: Outcome) => phase === 'act'

interface Ran {
  outcomes: Outcome[]
  error: string | undefined
}

async function runCase(each: Case, stage: Omit<Stage, 'signal'>): Promise<Ran> {
  const outcomes: Outcome[] = []
  const signal = AbortSignal.timeout(caseMs)
  try {
    await each.run({ ...stage, signal }, (outcome) => outcomes.push(outcome))
    return { outcomes, error: undefined }
  } catch (error) {
    return { outcomes, error: error instanceof Error ? error.message : String(error) }
  }
}

function rowsOf(each: Case, { outcomes, error, seed }: Ran & { seed: string }): Row[] {
  const { name, family, framework, version } = each
  const row = (phase: Phase) => ({
    ...{ name: nameOf(name, phase), case: name, kind: kindOf(each.kind, phase) },
    ...{ family, framework, version, acts: phase === 'act', seed },
  })
  const rows = outcomes.map(({ phase, verdict, score, signals, botd, fpscanner }): Row => {
    return { ...row(phase), verdict, score, signals_fired: signals, botd, fpscanner, error: null }
  })
  if (error === undefined) return rows
  const nothing = { verdict: null, score: null, signals_fired: [], botd: null, fpscanner: null }
  return [...rows, { ...row(outcomes.length === 0 ? 'load' : 'act'), ...nothing, error }]
}

function lineOf({ name, verdict, score, signals_fired: signals, botd, fpscanner, error }: Row): string {
  if (error !== null) return `${name.padEnd(36)} FAILED ${error}`
  const fired = signals.map(({ signal }) => signal).join(' ')
  const peers = [botd?.bot, fpscanner?.bot].map((bot) => (bot ? 'bot' : '-')).join(' ')
  return `${name.padEnd(36)} ${String(verdict).padEnd(13)} ${String(score).padStart(3)}  ${peers}  ${fired}`
}
