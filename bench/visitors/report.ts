import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { JudgedRun } from './judged.ts'
import type { Measures } from './measures.ts'

export interface ReplayResults {
  seed: string
  commit: string
  scenarios: {
    name: string
    loss: number
    browsers: number
    visits: number
    ours: Measures
    rules: Measures | null
  }[]
  people: JudgedRun[]
  twins: {
    count: number
    place: string
    apart: string
    first: number
    back: number
    mixed: number
  }[]
}

const title = '## Visitors'
const page = path.resolve(import.meta.dirname, '../../docs/reports/detection.md')

/** Replaces the page's last part, which it is. */
export async function writeVisitors(results: ReplayResults): Promise<void> {
  const [before = ''] = (await readFile(page, 'utf8')).split(`\n${title}\n`)
  await writeFile(page, `${before.trimEnd()}\n\n${visitorsPart(results)}\n`)
}

export function visitorsPart({ seed, commit, scenarios, people, twins }: ReplayResults): string {
  return [
    title,
    'Written by `make replay` (`bench/visitors/`), which calls the code that scoring runs. The browsers come from the public generator `fingerprint-generator`. Each visits once a week, and its attributes change as often as a study found (Vastel et al., FP-STALKER, IEEE S&P 2018). How drawings, networks, voices and media devices vary is assumed in `looks.ts` and `evolution.ts`.',
    `Seed ${seed}, commit ${commit}. The rules of that study see the same visits. They know no storage, so they run where all of it is lost, and on at most 2,000 browsers.`,
    '**ids**: visitors a browser has, 1 is best. **precision**, **recall**: BCubed, over visits. **mixed**: visitors with more than one browser. **days**: the longest time that a browser had one visitor, the mean.',
    table(
      [
        'population',
        'browsers',
        'visits',
        'storage lost',
        'by',
        'ids',
        'precision',
        'recall',
        'mixed',
        'days',
      ],
      scenarios.flatMap(({ name, browsers, visits, loss, ours, rules }, i) => {
        const isAgain = scenarios[i - 1]?.name === name && scenarios[i - 1]?.browsers === browsers
        const about = isAgain ? ['', '', ''] : [name, browsers, visits]
        const own = [...about, loss === 1 ? 'always' : `${loss * 100} of 100`, 'us', ...cells(ours)]
        return [own, ...(rules ? [['', '', '', '', 'rules', ...cells(rules)]] : [])]
      }),
    ),
    ...peoplePart(people),
    '### Twins',
    'Machines that are equal in all that is compared, in one network and in several, minutes and hours apart. Each comes without storage, and comes back with it. Counted are visitors after all first visits, after all second ones, and those that have two machines.',
    table(
      ['machines', 'visitors at first', 'after each came back', 'with two machines'],
      [...Map.groupBy(twins, ({ count }) => count)].map(([count, runs]) => [
        count,
        ...[
          runs.map(({ first }) => first),
          runs.map(({ back }) => back),
          runs.map(({ mixed }) => mixed),
        ].map(range),
      ]),
    ),
  ].join('\n\n')
}

function range(values: number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)]
  return least === most ? `${least}` : `${least} to ${most}`
}

function peoplePart(people: JudgedRun[]): string[] {
  const judged = people.filter(({ half }) => half === 'judged')
  return [
    '### Homes and offices',
    'Eight weeks of 400 homes, 16 offices, seven countries and their carriers (`population.ts`, `journeys.ts`). Phones of one model are equal, in a third of the homes all are of one model, and the machines of an office are one image. Storage is lost at 5 of 100 visits, 10 for Safari, and always by the 6 of 100 people whose windows are private. The rules were fitted on other homes, and nothing was changed after these were measured. The desktops of the first table were seen while fitting, so they are no blind test.',
    '- **wrong**: visits that were answered with a visitor whose oldest session is of another device. **mixed**: visitors with more than one device in the end.\n- **ids**: visitors a device has in the end. **bound**: the same for a matcher that knows which traits only one device ever has.',
    table(
      ['storage lost', 'devices', 'of', 'visits', 'wrong', 'mixed', 'ids', 'bound'],
      judged.map(({ name, group, judgement: j }, i) => [
        name === judged[i - 1]?.name ? '' : name,
        group,
        j.devices,
        j.visits,
        ...[j.wrong, j.mixed].map((share) => `${(100 * share).toFixed(2)} %`),
        ...[j.idsPerBrowser, j.bound].map((ids) => ids.toFixed(2)),
      ]),
    ),
  ]
}

function cells(m: Measures): string[] {
  const { idsPerBrowser, precision, recall, mixed, trackedDays } = m
  const fine = [precision, recall].map((value) => value.toFixed(4))
  return [
    idsPerBrowser.toFixed(3),
    ...fine,
    `${(100 * mixed).toFixed(2)} %`,
    trackedDays.toFixed(1),
  ]
}

function table(head: string[], rows: (string | number)[][]): string {
  return [head, head.map(() => '-'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
}
