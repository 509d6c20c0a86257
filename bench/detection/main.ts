import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { automationCases } from './automation.ts'
import type { Case } from './cases.ts'
import { findAllPrograms } from './desktop.ts'
import { desktopCases } from './desktop-hands.ts'
import { forgeryCases } from './forgeries.ts'
import { forgerCases } from './forgers.ts'
import { inventionCases } from './inventions.ts'
import { runMatrix } from './matrix.ts'
import { changesSince, countVerdicts, isJudged } from './measures.ts'
import { personCases } from './people.ts'
import { commitOf, describeHost, writeReport } from './report.ts'
import { type Results, readResults, writeResults } from './results.ts'
import { writeSignalTable } from './signal-table.ts'
import { gateTraces } from './traces/gate.ts'
import { browserVersions } from './versions.ts'

const { values: flags } = parseArgs({
  options: {
    /** Runs only cases whose name matches this regular expression. The results are shown, but not saved. */
    only: { type: 'string' },
    /** With --only, replaces the rows of these cases in the saved results. */
    merge: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    seed: { type: 'string', default: randomBytes(4).toString('hex') },
    /** Folders of public mouse traces. If given, only these are evaluated. */
    balabit: { type: 'string' },
    delbot: { type: 'string' },
  },
})
const matching = (all: Case[]) => all.filter(({ name }) => new RegExp(flags.only ?? '').test(name))
const chosen = matching([...automationCases, ...desktopCases, ...personCases])
const forged = matching([...forgeryCases, ...inventionCases, ...forgerCases])
// Forged cases need a person whose input they copy.
const recorded = personCases
  .slice(0, forged.length > 0 ? 1 : 0)
  .filter((each) => !chosen.includes(each))
const cases = [...chosen, ...recorded, ...forged]
if (flags.list) {
  for (const { name, kind, framework, version } of cases)
    console.log(name, kind, framework, version)
} else if (flags.balabit || flags.delbot) {
  const passes = await gateTraces({ balabit: flags.balabit, delbot: flags.delbot })
  if (!passes) process.exitCode = 1
} else await evaluate()

async function evaluate(): Promise<void> {
  console.log(`Seed ${flags.seed}, ${cases.length} cases`)
  if (flags.only === undefined) findAllPrograms()
  const started = performance.now()
  const commit = commitOf()
  const rows = await runMatrix({ cases, seed: flags.seed })
  const results: Results = {
    date: new Date().toISOString().slice(0, 10),
    commit,
    machine: describeHost(),
    versions: browserVersions(),
    seed: flags.seed,
    seconds: Math.round((performance.now() - started) / 1000),
    rows,
  }
  if (flags.only === undefined || flags.merge) await keep(results)
  console.table(countVerdicts(rows.filter(isJudged), ({ kind }) => kind))
}

async function keep(results: Results): Promise<void> {
  const before = await readResults()
  const ran = new Set(cases.map(({ name }) => name))
  const others = flags.merge ? (before?.rows ?? []).filter((row) => !ran.has(row.case)) : []
  const about = flags.merge && before ? before : results
  const whole = { ...about, rows: [...others, ...results.rows] }
  await writeReport(whole)
  if (before) console.table(changesSince(before.rows, whole.rows))
  await writeResults(whole)
  await writeSignalTable()
}
