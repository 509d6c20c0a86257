import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { trackByRules } from './fp-stalker.ts'
import { judgedRuns } from './judged.ts'
import { type Measures, measuresOf } from './measures.ts'
import { replay, type Visit } from './replay.ts'
import { type ReplayResults, writeVisitors } from './report.ts'
import { type Scenario, scenarios, type Twins, twinsOf } from './scenarios.ts'

const seed = process.env.SEED ?? 'visitors'

function measured(visits: Visit[], visitors: string[]): Measures {
  return measuresOf(
    visits.map(({ browser, at }, i) => ({ browser, at, visitor: visitors[i] ?? '' })),
  )
}

function resultOf({ name, loss, browsers, visits }: Scenario): ReplayResults['scenarios'][number] {
  const ours = measured(visits, replay(visits))
  const rules = loss === 1 && browsers <= 2000 ? measured(visits, trackByRules(visits)) : null
  console.log(
    `${name}, ${browsers}, lost ${loss}: ${ours.idsPerBrowser.toFixed(3)} ids, ownership ${ours.ownership.toFixed(4)}`,
  )
  return { name, loss, browsers, visits: visits.length, ours, rules }
}

function twinResultOf({
  count,
  place,
  apart,
  firsts,
  returns,
}: Twins): ReplayResults['twins'][number] {
  const both = [...firsts, ...returns]
  const visitors = replay(both)
  const { mixed } = measured(both, visitors)
  const all = new Set(visitors).size
  return {
    count,
    place,
    apart,
    first: new Set(replay(firsts)).size,
    back: all,
    mixed: Math.round(mixed * all),
  }
}

const results: ReplayResults = {
  seed,
  commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(),
  scenarios: [...scenarios(seed)].map(resultOf),
  people: [...judgedRuns(seed)],
  twins: twinsOf(seed).map(twinResultOf),
}
await writeFile(
  path.join(import.meta.dirname, 'results.json'),
  `${JSON.stringify(results, null, 2)}\n`,
)
await writeVisitors(results)
