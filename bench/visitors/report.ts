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

/** Replaces the last part of the page. */
export async function writeVisitors(results: ReplayResults): Promise<void> {
  const [before = ''] = (await readFile(page, 'utf8')).split(`\n${title}\n`)
  await writeFile(page, `${before.trimEnd()}\n\n${visitorsPart(results)}\n`)
}

// Office machines are the hardest group, and phones in homes of one model are among the phones.
function isShown({ name, half, group }: JudgedRun): boolean {
  if (half !== 'judged' || name === '10 of 100') return false
  const isHardest = group === 'all' || group === 'office machines'
  return isHardest || (name === 'as people lose it' && (group === 'phones' || group === 'desktops'))
}

export function visitorsPart({ seed, commit, people }: ReplayResults): string {
  const judged = people.filter(isShown)
  return [
    title,
    `How often a device is taken for another one (a wrong visitor), or gets a new visitor. \`make replay\` (\`bench/visitors/\`, seed \`${seed}\`, commit ${commit}) sends simulated visits of 400 homes and 16 offices through the production code. Phones of one model are identical, as are the machines of an office. Storage is lost at 5 % of visits (Safari 10 %), and always by the 6 % of people who browse privately. How traits vary is assumed. The matching was tuned on other homes.`,
    table(
      ['storage lost', 'devices', 'count', 'wrong', 'mixed', 'ids', 'ideal'],
      judged.map(({ name, group, judgement: j }, i) => [
        name === judged[i - 1]?.name ? '' : name,
        group,
        j.devices,
        ...[j.wrong, j.mixed].map(percent),
        ...[j.idsPerBrowser, j.bound].map((ids) => ids.toFixed(2)),
      ]),
    ),
    '*Wrong*: visits assigned to a visitor that another device began. *Mixed*: visitors with several devices at the end. *Ids*: visitors per device; *ideal*: ids if the matcher knew which traits are unique.',
  ].join('\n\n')
}

const percent = (share: number) => `${(100 * share).toFixed(2)} %`

function table(head: string[], rows: (string | number)[][]): string {
  const lines = [head, ...rows].map((row) => `| ${row.join(' | ')} |`)
  return [lines[0], `|${head.map(() => '-').join('|')}|`, ...lines.slice(1)].join('\n')
}
