import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { visitorsPart } from '../visitors/report.ts'
import replay from '../visitors/results.json' with { type: 'json' }
import { attackClasses } from './attacks.ts'
import { leftOut } from './fit.ts'
import { attacksOf, goalsOf } from './goals.ts'
import {
  areaUnderCurve,
  type Counts,
  caughtByPeersOnly,
  countVerdicts,
  isJudged,
  type JudgedRow,
  kinds,
  rocOf,
} from './measures.ts'
import type { Results, Row } from './results.ts'

const file = path.resolve(import.meta.dirname, '../../docs/reports/detection.md')

export function describeHost(): Record<string, string> {
  const release = /^PRETTY_NAME="(.*)"$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1]
  return {
    processor: os.cpus()[0]?.model.trim() ?? 'unknown',
    cores: String(os.availableParallelism()),
    system: release ?? os.type(),
    node: process.versions.node,
  }
}

export function commitOf(): string {
  return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
}

export async function writeReport(results: Results): Promise<void> {
  await writeFile(file, reportOf(results))
}

export function reportOf(results: Results): string {
  const all = results.rows.filter(isJudged)
  // Forgers and people of a deployment that has learned nothing are in sections of their own.
  const rows = all.filter(
    ({ kind, isFresh }) => kind !== 'forger' && !(isFresh && kind === 'person'),
  )
  return `${[
    '# Detection, measured',
    'How well Tidegate tells bots from people, and where it does not. `make eval` writes this page from `bench/detection/results.json`, which has every case with all that fired. Each case is a real browser (or none, where it says so) against a server of its own. It is judged when its page has loaded, and again when it has sent its form. BotD and fpscanner run in the same page, after the first hand-off.',
    about(results),
    '## Goals',
    ...goals(all),
    '## Verdicts',
    ...verdicts(rows),
    '## Forgers',
    ...forgers(all),
    '## What a determined attacker can do',
    ...attackers,
    '## People',
    ...people(rows),
    ...freshPeople(all),
    '## Left out of the fit',
    ...leftOutVerdicts(rows),
    '## Scores',
    ...roc(rows),
    '## Tool by tool',
    ...tools(rows),
    '## What a peer catches and we do not',
    ...peerCatches(rows),
    '## Failed cases',
    ...failures(results.rows),
    visitorsPart(replay),
  ].join('\n\n')}\n`
}

function about({ date, commit, machine, versions, seed, seconds }: Results): string {
  const list = (values: Record<string, string>) =>
    Object.entries(values).map(([name, value]) => `${name} ${value}`)
  return [
    `- ${date}, commit ${commit}, seed \`${seed}\`, ${Math.round(seconds / 60)} minutes`,
    `- ${list(machine).join(', ')}`,
    `- ${list(versions).join(', ')}`,
  ].join('\n')
}

function goals(rows: JudgedRow[]): string[] {
  const cells = goalsOf(rows).map(({ goal, measured, isMet }) => {
    return [goal, measured, isMet === null ? '' : isMet ? 'met' : '**missed**']
  })
  return [table(['', 'measured', ''], cells)]
}

/** Forged sessions by what they take, by whether the claimed engine was taught, and by whether they bring input. */
function forgers(rows: JudgedRow[]): string[] {
  const attacks = attacksOf(rows)
  const names = Object.entries(attackClasses)
  const costs = names.map(([, { title, cost }]) => `- **${title}**: ${cost}`)
  const single = attacks.filter(({ attack }) => attack.class !== 'mass')
  const counts = countVerdicts(single, ({ attack }) => {
    const taught = attack?.isTaught ? 'taught' : 'not taught'
    return `${attack && attackClasses[attack.class].title}, engine ${taught}, ${attack?.hasInput ? 'copied input' : 'no input'}`
  })
  const runs = Map.groupBy(
    attacks.filter(({ attack }) => attack.class === 'mass'),
    (row) => row.case,
  )
  const mass = [...runs].map(([name, sessions]) => {
    const human = sessions.filter(({ verdict }) => verdict === 'human')
    const early = human.filter(({ nth = 0 }) => nth < 10).length
    return [name, String(sessions.length), String(early), String(human.length - early)]
  })
  const passing = single.filter(({ verdict }) => verdict === 'human')
  const byClass = Map.groupBy(passing, ({ attack }) => attackClasses[attack.class].title)
  return [
    `Scripts that send sessions by HTTP, each from an address of its own, and claim ${[...new Set(attacks.map(({ attack }) => attack.claim))].join(', ')}. What each takes:`,
    costs.join('\n'),
    countTable('', counts),
    "Mass runs send 40 sessions in ten seconds from one address. `equal-input` sends the same input in each; the others with input change one person's by up to 30 %.",
    table(['mass run', 'sessions', 'human before the tenth', 'human from the tenth on'], mass),
    'Judged human, mass runs aside:',
    [...byClass]
      .map(
        ([title, found]) =>
          `- ${title}: ${[...new Set(found.map((row) => row.case.replace('forger-', '')))].join(', ')}`,
      )
      .join('\n') || 'None.',
  ]
}

function verdicts(rows: JudgedRow[]): string[] {
  const hostile = rows.filter(({ kind }) => kind !== 'person')
  return [
    countTable(
      '',
      countVerdicts(rows, ({ kind }) => kinds[kind]),
    ),
    'Everything but people, by family of browser:',
    countTable(
      '',
      countVerdicts(hostile, ({ family }) => family),
    ),
    'The server was taught by Chromium, Firefox and WebKitGTK of this machine (`tidegate learn --open`). "Answers from this repository" are forgers who have read it, so that they know what every engine answers. Sessions of `tidegate simulate` are in no table, because they tell nothing about detection.',
  ]
}

const attackers = [
  'A determined attacker drives a real browser on a machine with fonts and sound, and moves its mouse and keyboard below the browser along recorded paths of people. `xdotool-human` is such a case, and it is human. So is a farm of phones, and so are people who are paid. Nothing in a page tells them from the visitors that a site wants, so only repeats, addresses, rates and what a site knows of its accounts are left.',
  "Sessions that a script invents pass where a real engine answers their questions as they come (a live oracle). Nothing separates it: an answer takes milliseconds, less than slow machines need, and a question about a document's own input would be handed to the oracle, too. They also pass where they bring copied input and claim an engine that nobody has taught, which on a fresh deployment is every engine. A recorded visit that is sent again is found where its numbers are changed by a few percent. It is not found where all of them are changed by a tenth or more, and durations are computed anew. Visits at random gaps, from many addresses, with hands that vary as much as people do are not found either.",
  'A browser that nobody has touched yet may be indistinguishable from one that a person has just opened: most automation that stays human only loads the page. `patchright-careful` pauses as people do, and little but the clock of X11 reveals it. On Windows and macOS that clock reveals nothing, so it would be human there. Remote debugging is seen in one way, a logged error that is serialised, and Patchright silences that. A rejected promise would show it, too, but it breaks the tests that customers run with Playwright on their own pages.',
]

function people(rows: JudgedRow[]): string[] {
  const found = rows.filter(({ kind }) => kind === 'person')
  return [
    'Whoever is not `human` here is a false positive.',
    countTable(
      '',
      countVerdicts(found, ({ family }) => family),
    ),
    'Each person has a twin whose browser gets a twentieth of one processor, by a control group, once it has asked for the page:',
    countTable(
      '',
      countVerdicts(found, (row) => (isThrottled(row) ? 'a twentieth of the speed' : 'as it is')),
    ),
    'Among them are ad blockers, private windows, a screen reader, remote desktops over VNC, German locales, zoom, developer tools and a proxy that rewrites the user agent. `chromium-blocker`, `brave-like`, `librewolf-like` and Electron are imitations, since the originals could not be installed. Firefox on Wayland is left out.',
  ]
}

function freshPeople(rows: JudgedRow[]): string[] {
  const fresh = rows.filter(({ kind, isFresh }) => kind === 'person' && isFresh)
  if (fresh.length === 0) return []
  const input = ({ acts }: JudgedRow) => (acts ? 'after input' : 'before any input')
  return ['Where nothing is learned yet:', countTable('', countVerdicts(fresh, input))]
}

const isThrottled = ({ case: name }: Row) => name.endsWith('-throttled')

function leftOutVerdicts(rows: JudgedRow[]): string[] {
  const about =
    'The points of signals are fitted to these rows (`bench/detection/fit.ts`). Each row is judged once more, by points that were fitted without its framework, and people by points that were fitted without their browser.'
  const byKind = (some: JudgedRow[]) => countVerdicts(some, ({ kind }) => kinds[kind])
  const [own, others] = [byKind(rows), byKind(leftOut(rows))].map((counts) =>
    countTable('', counts),
  )
  return [
    about,
    own === others ? 'All counts are those of [verdicts](#verdicts) then, too.' : `${others}`,
  ]
}

function countTable(title: string, counts: Counts[]): string {
  const share = (part: number, of: number) => `${part} (${percent(part / of)})`
  return table(
    [title, 'moments', 'bot', 'inconclusive', 'human'],
    counts.map(({ name, rows, bot, inconclusive, human }) => {
      return [name, String(rows), share(bot, rows), share(inconclusive, rows), share(human, rows)]
    }),
  )
}

function roc(rows: JudgedRow[]): string[] {
  const points = rocOf(rows).map(({ threshold, truePositives, falsePositives }) => {
    return [String(threshold), percent(truePositives), percent(falsePositives)]
  })
  return [
    'Over all judged moments: true positives are of everything but people, false positives of people.',
    table(['score from', 'true positives', 'false positives'], points),
    `Area under the curve: ${areaUnderCurve(rows).toFixed(3)}.`,
  ]
}

function tools(rows: JudgedRow[]): string[] {
  const driven = rows.filter(({ kind, family }) => kind !== 'person' && family !== 'no browser')
  const cells = [...Map.groupBy(driven, (row) => row.case)].map(([name, moments]) => {
    const at = (acts: boolean) => {
      const row = moments.find((moment) => moment.acts === acts)
      return row ? `${row.verdict} ${row.score}` : ''
    }
    const [{ framework = '', version = '' } = {}] = moments
    return [name, `${framework} ${version.replace(/ built on .*/, '')}`.trim(), at(false), at(true)]
  })
  const short = cells.map(([name = '', by = '', ...rest], i) => [
    name,
    by === cells[i - 1]?.[1] ? '' : by,
    ...rest,
  ])
  return [
    'An empty cell of the second column is as the one above.',
    table(['case', 'by', 'loads', 'acts'], short),
  ]
}

function peerCatches(rows: JudgedRow[]): string[] {
  const found = caughtByPeersOnly(rows)
  const intro = 'What a peer finds on people as well is left out.'
  if (found.length === 0) return [intro, 'None.']
  const cells = found.map(({ name, verdict, score, found }) => [
    name,
    `${verdict} ${score}`,
    found.join(', '),
  ])
  return [intro, table(['case', 'ours', 'found by'], cells)]
}

function failures(rows: Row[]): string[] {
  const failed = rows.filter(({ error }) => error !== null)
  if (failed.length === 0) return ['None.']
  const short = (error: string | null) =>
    code([(error ?? '').replace(/\s+/g, ' ').replaceAll('`', "'").slice(0, 300)])
  return [
    table(
      ['case', 'error'],
      failed.map(({ name, error }) => [name, short(error)]),
    ),
  ]
}

const percent = (share: number) => `${Math.round(share * 100)} %`
const code = (words: string[]) => words.map((word) => `\`${word}\``).join(' ') || '-'

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), `|${head.map(() => '-').join('|')}|`, ...rows.map(line)].join('\n')
}
