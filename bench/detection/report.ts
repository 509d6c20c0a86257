import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { visitorsPart } from '../visitors/report.ts'
import replay from '../visitors/results.json' with { type: 'json' }
import { leftOut } from './fit.ts'
import {
  areaUnderCurve,
  type Counts,
  caughtByPeersOnly,
  changesSince,
  countVerdicts,
  isJudged,
  type JudgedRow,
  kinds,
  missesOf,
  rocOf,
} from './measures.ts'
import type { Results, Row } from './results.ts'
import type { Peer } from './site.ts'

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

export async function writeReport(results: Results, before: Results | undefined): Promise<void> {
  await writeFile(file, reportOf(results, before))
}

export function reportOf(results: Results, before: Results | undefined): string {
  const rows = results.rows.filter(isJudged)
  return `${[
    '# Detection, measured',
    'Written by `make eval`, which is no part of the tests; change `bench/detection/` rather than this page. Each case is a real browser (or none, where it says so) against a server of its own. It is judged when its page has loaded (`load`) and when it has sent its form (`act`). BotD and fpscanner run in the same page, after the first hand-off. Everything that fired is in `bench/detection/results.json`.',
    about(results),
    '## Verdicts',
    ...verdicts(rows),
    '## Left out of the fit',
    ...leftOutVerdicts(rows),
    '## ROC',
    ...roc(rows),
    '## Automation that stays human',
    ...misses(rows),
    '## Hands that are not told from people',
    ...unseenHands,
    '## What a peer catches and we do not',
    ...peerCatches(rows),
    '## Since the run before',
    ...changes(results, before),
    '## Failed cases',
    ...failures(results.rows),
    '## Mouse traces',
    mouseTraces,
    '## Case by case',
    ...Object.entries(kinds).flatMap(([kind, title]) =>
      caseTable(
        title,
        rows.filter((row) => row.kind === kind),
      ),
    ),
    visitorsPart(replay),
  ].join('\n\n')}\n`
}

const unseenHands = [
  '`xdotool-human` moves the pointer and types through the window system as the people here do, and is human. So is every program below the browser that does. `xdotool-jump` has no path, and is not.',
  '`patchright-careful` moves, waits, holds Shift and halts before words. Little but the clock of X11 tells it, so that it is inconclusive here. On Windows and macOS that clock tells nothing, and it would be human.',
  'Remote debugging is seen in one way: a logged error is serialised. Patchright and others silence that. A rejected promise would show it, too, but it breaks the tests that customers run with Playwright on their own pages, so it is not used.',
]

const mouseTraces =
  "`make eval ARGS='--balabit DIR --delbot DIR'` runs recorded hands through the SDK's summariser and the signals of behaviour, and fails where a risk signal fires on more than 1 % of people's traces. Neither set is ours to ship. Balabit's is CSV with the columns `record timestamp,client timestamp,button,state,x,y`, in seconds. DELBOT's is a line `resolution:width,height` and then lines of `milliseconds,action,x,y`; what has `bot` in its path counts as a bot's."

function about({ date, commit, machine, versions, seed, seconds }: Results): string {
  const list = (values: Record<string, string>) =>
    Object.entries(values).map(([name, value]) => `${name} ${value}`)
  return [
    `- ${date}, commit ${commit}, seed \`${seed}\`, ${Math.round(seconds / 60)} minutes`,
    `- ${list(machine).join(', ')}`,
    `- ${list(versions).join(', ')}`,
  ].join('\n')
}

function verdicts(rows: JudgedRow[]): string[] {
  const hostile = rows.filter(({ kind }) => kind !== 'person')
  const people = rows.filter(({ kind }) => kind === 'person')
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
    'The server was taught by Chromium and Firefox of this machine (`tidegate learn`). Where nothing is learned yet, a script without a browser that has read this repository knows what every engine answers, and what it invents completely looks like a person. Nothing here catches whoever drives a real browser and moves as a person does. Nor does it catch who lets a real engine answer the questions for sessions that a script invents, or who claims an engine that nobody has taught. A recorded visit that is sent again is found where its numbers are changed by a few percent. Where all of them are changed by a tenth or more, and durations are computed anew, it is not. Nor are visits that are made at random gaps, from many addresses, with hands that vary as much as people do.',
    'Sessions of `tidegate simulate` are in no table here: where they are human a key says that they are simulated, and elsewhere they are not human. They tell nothing about detection.',
    attackers,
    'People, by family of browser: whoever is not `human` is a false positive.',
    countTable(
      '',
      countVerdicts(people, ({ family }) => family),
    ),
    peopleAndPlaces,
    countTable(
      '',
      countVerdicts(people, (row) => (isThrottled(row) ? 'a twentieth of the speed' : 'as it is')),
    ),
  ]
}

const isThrottled = ({ case: name }: Row) => name.endsWith('-throttled')

const peopleAndPlaces =
  'Each person has a twin whose browser gets a twentieth of one processor, by a control group, once it has asked for the page. `firefox-blocker` is uBlock Origin with scriptlets for the page. `chromium-blocker` is an imitation: an extension that wraps the same functions. The case `brave-like` adds noise to a canvas, and `librewolf-like` has settings of LibreWolf. A remote desktop is one over VNC, Wayland is Weston, and the proxy rewrites the user agent of all requests. Firefox on Wayland is left out. In Chromium on Wayland input has a clock of its own, which `unsynchronized_input_clock` cannot tell from that of a program. Electron is an old Chromium with a user agent of Electron, as no registry has Electron itself.'

const attackers =
  'What remains open to a determined attacker is a real browser on a machine with fonts and sound. Its mouse and keyboard are moved below the browser, along recorded paths of people. `xdotool-human` is such a case, and it is human. So is a farm of phones, or people who are paid. Nothing in a page tells them from the visitors that a site wants. What is left are repeats, addresses and rates, and what a site knows of its accounts.'

function leftOutVerdicts(rows: JudgedRow[]): string[] {
  return [
    'The points of signals are fitted to these rows (`bench/detection/fit.ts`). Here each row is judged by points that were fitted without its framework, and people by points that were fitted without their browser.',
    countTable(
      '',
      countVerdicts(leftOut(rows), ({ kind }) => kinds[kind]),
    ),
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

function misses(rows: JudgedRow[]): string[] {
  const found = missesOf(rows)
  if (found.length === 0) return ['None.']
  const intro =
    'Looked for and not found is what fires most often on other automation of the same family and kind, and not here. A real, unpatched browser that nobody has touched yet may be indistinguishable from one that a person has just opened.'
  const cells = found.map(({ name, score, found, notFound }) => [
    name,
    String(score),
    code(found),
    code(notFound),
  ])
  return [intro, table(['case', 'score', 'risk found', 'looked for and not found'], cells)]
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

function changes(results: Results, before: Results | undefined): string[] {
  if (!before) return ['This is the first run.']
  const found = changesSince(before.rows, results.rows)
  const intro = `Against ${before.date}, commit ${before.commit}, seed \`${before.seed}\`: ${found.length} of ${results.rows.length} moments differ.`
  if (found.length === 0) return [intro]
  return [
    intro,
    table(
      ['case', 'before', 'now'],
      found.map(({ name, before, after }) => [name, before, after]),
    ),
  ]
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

function caseTable(title: string, rows: JudgedRow[]): string[] {
  if (rows.length === 0) return []
  const cells = rows.map((row) => {
    const tool = `${row.framework} ${row.version}`.trim()
    return [
      row.name,
      tool,
      row.verdict,
      String(row.score),
      code(topSignals(row)),
      peer(row.botd),
      peer(row.fpscanner),
    ]
  })
  const head = ['case', 'by', 'verdict', 'score', 'top signals', 'BotD', 'fpscanner']
  return [`### ${title[0]?.toUpperCase()}${title.slice(1)}`, table(head, cells)]
}

function topSignals({ signals_fired: signals }: Row): string[] {
  const risky = signals.filter(({ role }) => role === 'risk')
  return risky
    .toSorted((a, b) => b.signal_score - a.signal_score)
    .slice(0, 3)
    .map(({ signal }) => signal)
}

function peer(said: Peer | null): string {
  if (!said) return ''
  return said.bot ? `bot: ${said.why.join(', ')}` : said.bot === null ? said.why.join() : '-'
}

const percent = (share: number) => `${Math.round(share * 100)} %`
const code = (words: string[]) => words.map((word) => `\`${word}\``).join(' ') || '-'

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), `|${head.map(() => '-').join('|')}|`, ...rows.map(line)].join('\n')
}
