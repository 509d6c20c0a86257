import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { SentObservations } from '../../schemas/observations.ts'
import { type Case, kindOf, type Outcome, type Stage } from './cases.ts'
import { type Desktop, openDesktop } from './desktop.ts'
import { type Oracle, type OracleBrowser, openOracle } from './oracle.ts'
import { nameOf, type Row } from './results.ts'
import { openSite, type Phase, type Site } from './site.ts'
import { startTidegate, type Tidegate } from './tidegate.ts'

const caseMs = 60_000
// With a twentieth of a CPU, Firefox takes minutes to draw its window.
const slowCaseMs = 600_000
const slowAtOnce = 6

interface Matrix {
  cases: Case[]
  seed: string
}

interface Deployment {
  tidegate: Tidegate
  site: Site
}

interface Place {
  seed: string
  taught: Deployment
  fresh: Deployment
  oracle: Stage['oracle']
  /** Bodies of the first person that acted. */
  recording: Promise<SentObservations[]> | undefined
}

/**
 * Runs the cases in sequence against two servers, one of which has learned Chromium, Firefox and WebKitGTK. Slowed
 * cases run concurrently at the end. Returns a row for each phase of each case, including failures.
 */
export async function runMatrix({ cases, seed }: Matrix): Promise<Row[]> {
  await using undo = new AsyncDisposableStack()
  const taught = await openDeployment({ isTaught: true }, undo)
  const fresh = await openDeployment({ isTaught: false }, undo)
  const oracles = new Map<OracleBrowser, Promise<Oracle>>()
  async function oracle(browser: OracleBrowser) {
    const opened = oracles.get(browser) ?? openOracle(browser)
    oracles.set(browser, opened)
    return (await opened).answer
  }
  undo.defer(async () => {
    for (const opened of oracles.values()) await (await opened).close()
  })
  const place: Place = { seed, taught, fresh, oracle, recording: undefined }
  const alone = cases.filter(({ isSlow }) => !isSlow)
  const slow = cases.filter(({ isSlow }) => isSlow)
  return [...(await runAll(alone, place)), ...(await runBeside(slow, place))]
}

async function openDeployment(
  how: { isTaught: boolean },
  undo: AsyncDisposableStack,
): Promise<Deployment> {
  const tidegate = await startTidegate(how)
  undo.defer(tidegate.stop)
  const site = await openSite({
    endpoint: tidegate.url,
    publishableKey: tidegate.keys.publishable_key,
  })
  undo.defer(site.close)
  return { tidegate, site }
}

async function runAll(cases: Case[], place: Place): Promise<Row[]> {
  const desktop = await openDesktop()
  const rows: Row[] = []
  for (const each of cases) rows.push(...(await rowsOfCase(each, place, desktop)))
  await desktop.close()
  return rows
}

async function runBeside(cases: Case[], place: Place): Promise<Row[]> {
  const left = cases.values()
  const rows = new Map<Case, Row[]>()
  const work = async () => {
    for (const each of left) rows.set(each, await runAll([each], place))
  }
  await Promise.all(Array.from({ length: slowAtOnce }, work))
  return cases.flatMap((each) => rows.get(each) ?? [])
}

async function rowsOfCase(each: Case, place: Place, desktop: Desktop): Promise<Row[]> {
  const { name } = each
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-case-'))
  const { tidegate, site } = each.isFresh ? place.fresh : place.taught
  const visit = site.visit(name)
  const own = { name, visit, folder, seed: `${place.seed}/${name}` }
  const stage = {
    ...own,
    desktop,
    tidegate,
    oracle: place.oracle,
    recording: () => place.recording ?? Promise.reject(new Error('no person acted before it')),
  }
  const { outcomes, error } = await runCase(each, stage)
  const acted = each.kind === 'person' && !each.isFresh ? outcomes.find(isAct) : undefined
  if (acted) place.recording ??= tidegate.observations(acted.sessionId)
  const rows = rowsOf(each, { outcomes, error, seed: stage.seed })
  for (const row of rows) console.log(lineOf(row))
  // A process that a browser left running may still write there.
  await rm(folder, { recursive: true, force: true, maxRetries: 5 }).catch(() => {})
  return rows
}

const isAct = ({ phase }: Outcome) => phase === 'act'

interface Ran {
  outcomes: Outcome[]
  error: string | undefined
}

async function runCase(each: Case, stage: Omit<Stage, 'signal'>): Promise<Ran> {
  const outcomes: Outcome[] = []
  const signal = AbortSignal.timeout(each.isSlow ? slowCaseMs : caseMs)
  try {
    await each.run({ ...stage, signal }, (outcome) => outcomes.push(outcome))
    return { outcomes, error: undefined }
  } catch (error) {
    return { outcomes, error: error instanceof Error ? error.message : String(error) }
  }
}

function rowsOf(each: Case, { outcomes, error, seed }: Ran & { seed: string }): Row[] {
  const { name, family, framework, version, attack } = each
  const row = (phase: Phase, nth?: number) => ({
    name: nameOf(name, phase, nth),
    case: name,
    kind: kindOf(each.kind, phase),
    family,
    framework,
    version,
    acts: phase === 'act',
    seed,
    ...(attack && { attack }),
    ...(each.isFresh && { isFresh: true as const }),
  })
  const rows = outcomes.map(({ phase, verdict, score, signals, botd, fpscanner, nth }): Row => {
    const judgement = { verdict, score, signals_fired: signals, botd, fpscanner, error: null }
    return { ...row(phase, nth), ...judgement, ...(nth === undefined ? {} : { nth }) }
  })
  if (error === undefined) return rows
  const nothing = { verdict: null, score: null, signals_fired: [], botd: null, fpscanner: null }
  return [...rows, { ...row(outcomes.length === 0 ? 'load' : 'act'), ...nothing, error }]
}

function lineOf({
  name,
  verdict,
  score,
  signals_fired: signals,
  botd,
  fpscanner,
  error,
}: Row): string {
  if (error !== null) return `${name.padEnd(36)} FAILED ${error}`
  const fired = signals.map(({ signal }) => signal).join(' ')
  const peers = [botd?.bot, fpscanner?.bot].map((bot) => (bot ? 'bot' : '-')).join(' ')
  return `${name.padEnd(36)} ${String(verdict).padEnd(13)} ${String(score).padStart(3)}  ${peers}  ${fired}`
}
