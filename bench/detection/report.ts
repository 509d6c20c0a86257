import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { visitorsPart } from '../visitors/report.ts'
import replay from '../visitors/results.json' with { type: 'json' }
import { attackClasses } from './attacks.ts'
import { leftOut } from './fit.ts'
import { attacksOf, goalsOf, isVaried } from './goals.ts'
import {
  areaUnderCurve,
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
  return `${[
    '# Detection',
    'How well Tidegate tells bots from people, and what it misses. `make eval` measures it and writes this page; `bench/detection/results.json` has every check with its signals.',
    '## Method',
    [...method, about(results)].join('\n'),
    '## Results',
    goals(all),
    ...notes(results.rows),
    '## What an attack costs',
    ...forgers(all),
    '## What a determined attacker can do',
    attackers.join('\n'),
    '## Automation that passes',
    ...tools(all),
    visitorsPart(replay),
  ].join('\n\n')}\n`
}

const method = [
  '- **Automation** is a real browser that a tool drives. It is checked when it has loaded the page (`load`), and again when it has sent a form (`act`).',
  '- **Forged sessions** come from scripts without a browser, which must answer [questions](../reference/scoring-model.md#required-evidence) about the engine that they claim to be. An *oracle* is a real browser that answers for them. A *mass run* is 40 sessions from one address in ten seconds.',
  '- **People are simulated.** `xdotool` moves the mouse in real browsers along curved paths, and types with errors. Setups include ad blockers, private windows, a screen reader, remote desktops, developer tools, and a CPU slowed 20×. Brave, LibreWolf, Electron and one ad blocker are imitated.',
  '- **Taught** engines are those whose answers the server [knows](../operate/engines.md). One server was taught Chromium, Firefox and WebKitGTK; a fresh one has learned nothing.',
]

function about({ date, commit, versions, seed }: Results): string {
  const browsers = Object.entries(versions).map(([name, version]) => {
    const short = version.replace(/ built on .*/, '')
    return short.includes(name) ? short : `${name} ${short}`
  })
  return `- **Run** of ${date}, commit ${commit}, seed \`${seed}\`: ${browsers.join(', ')}.`
}

function goals(rows: JudgedRow[]): string {
  const cells = goalsOf(rows)
    .filter(({ isOfAttack }) => !isOfAttack)
    .map(({ goal, measured, isMet }) => {
      return [goal, measured, isMet === null ? '' : isMet ? 'met' : '**missed**']
    })
  return table(['checks and goal', 'measured', 'result'], cells)
}

function notes(rows: Row[]): string[] {
  const judged = rows.filter(isJudged).filter((row) => row.kind !== 'forger' && !isFreshPerson(row))
  const doubted = judged.filter(
    ({ kind, verdict }) => kind === 'person' && verdict === 'inconclusive',
  )
  const failed = rows.filter(({ error }) => error !== null)
  return [
    [
      `- Inconclusive people on the taught server: ${namesOf(doubted, '-throttled')}. Failed and not counted: ${namesOf(failed)}.`,
      `- ${roc(judged)}`,
      `- The points of signals are fitted to these checks. ${leftOutVerdicts(judged)}`,
    ].join('\n'),
  ]
}

const isFreshPerson = ({ kind, isFresh }: Row) => kind === 'person' && isFresh === true

function namesOf(rows: Row[], without = ''): string {
  const names = rows.map((row) => row.case.replace(/^person-/, '').replace(without, ''))
  return code([...new Set(names)]) || 'none'
}

function roc(rows: JudgedRow[]): string {
  const shares = rocOf(rows).flatMap(({ threshold, truePositives, falsePositives }) =>
    threshold === 40 || threshold === 70
      ? `${percent(truePositives)} of bots and ${percent(falsePositives)} of people score at least ${threshold}`
      : [],
  )
  return `${shares.join('; ')}. The area under the ROC curve is ${areaUnderCurve(rows).toFixed(3)}.`
}

function leftOutVerdicts(rows: JudgedRow[]): string {
  const byKind = (judged: JudgedRow[]) =>
    countVerdicts(judged, ({ kind }) => kinds[kind])
      .map(({ name, bot, inconclusive, human }) => `${name} ${bot}/${inconclusive}/${human}`)
      .join(', ')
  const [fitted, refitted] = [byKind(rows), byKind(leftOut(rows))]
  return fitted === refitted
    ? 'Points fitted without the tool or browser under test give the same counts.'
    : `Points fitted without the tool or browser under test give these counts (bot/inconclusive/human): ${refitted}.`
}

/** Returns tables of forged sessions by attack, by whether the engine was learned, and by whether they have input. */
function forgers(rows: JudgedRow[]): string[] {
  const attacks = attacksOf(rows)
  const claims = new Set(attacks.map(({ attack }) => attack.claim))
  const ways = [true, false].flatMap((isTaught) =>
    [false, true].map((hasInput) => ({ isTaught, hasInput })),
  )
  const cells = Object.entries(attackClasses).flatMap(([name, { title, cost }]) => {
    if (name === 'mass') return []
    const counts = ways.map(({ isTaught, hasInput }) => {
      const sent = attacks.filter(
        ({ attack: a }) => a.class === name && a.isTaught === isTaught && a.hasInput === hasInput,
      )
      return sent.length === 0 ? '' : `${sent.filter(isHuman).length} of ${sent.length}`
    })
    return [[title, cost, ...counts]]
  })
  const mass = attacks.filter(({ attack }) => attack.class === 'mass')
  const early = mass.filter(({ nth = 0 }) => nth < 10)
  const varied = mass.filter((row) => isVaried(row) && (row.nth ?? 0) >= 10)
  return [
    `How many forged sessions were scored as human. They claim ${claims.size} browsers. *Input* is copied from a recorded visit, with its numbers varied.`,
    table(
      [
        'attack',
        'what it takes',
        'taught, no input',
        'taught, input',
        'not taught, no input',
        'not taught, input',
      ],
      cells,
    ),
    `In mass runs, ${early.filter(isHuman).length} of ${early.length} sessions before the tenth were human. From the tenth on, ${varied.filter(isHuman).length} of ${varied.length} were human in a run whose input varied by 30 %.`,
  ]
}

const isHuman = ({ verdict }: JudgedRow) => verdict === 'human'

const attackers = [
  '- **Use real input,** as phone farms, paid people and `xdotool-human` do. Only repeats, addresses, rates and your own account data reveal them.',
  '- **Ask a real browser (live oracle).** It answers within milliseconds, faster than slow machines, so its delay reveals nothing.',
  '- **Vary a replay.** It is detected if the numbers differ by a few percent, but not if each changes by a tenth or more and durations are recomputed. It is not detected either if it comes at random intervals, from many addresses, and varies as much as people do.',
  '- **Attack a fresh deployment.** Copied input passes as human for any engine that nobody has taught. [Teach engines](../operate/engines.md) before you go live.',
  '- **Pause like a person,** as `patchright-careful` does. Only X11 event times reveal it, so on Windows and macOS it would pass as human.',
  '- **Hide the debugger.** Remote debugging is detected when the debugger serializes a logged error, which Patchright prevents. Other checks would break Playwright tests of your own pages.',
]

function tools(rows: JudgedRow[]): string[] {
  const judged = rows.filter((row) => row.kind !== 'forger' && !isFreshPerson(row))
  const driven = judged.filter(({ kind, family }) => kind !== 'person' && family !== 'no browser')
  const cases = [...Map.groupBy(driven, (row) => row.case)]
  const passing = cases.filter(([, checks]) => checks.some(({ verdict }) => verdict !== 'bot'))
  const groups = Map.groupBy(passing, ([, checks]) => {
    const at = (acts: boolean) => checks.find((check) => check.acts === acts)?.verdict ?? ''
    return [at(false), at(true)].join(' | ')
  })
  const names = new Set(passing.map(([name]) => name))
  const weak = new Set(driven.filter((row) => names.has(row.case)).map((row) => row.framework))
  const caught = new Set(driven.map((row) => row.framework).filter((name) => !weak.has(name)))
  const byPeers = caughtByPeersOnly(judged).map(({ name }) => name.split('/')[0] ?? '')
  return [
    `In ${passing.length} of ${cases.length} cases, at least one check wasn't scored as a bot:`,
    table(
      ['load', 'act', 'cases'],
      [...groups].map(([verdicts, found]) => [
        ...verdicts.split(' | '),
        found.map(toolOf).join(', '),
      ]),
    ),
    `BotD or fpscanner detects these, and no person: ${code([...new Set(byPeers)]) || 'none'}. Every check of these tools was scored as a bot: ${code([...caught])}.`,
  ]
}

/** Returns the name of the case with the version of its tool. */
function toolOf([name, [check]]: [string, JudgedRow[]]): string {
  const version = /^[\d.]+$/.exec(check?.version ?? '')?.[0]
  return version ? `\`${name}\` ${version}` : `\`${name}\``
}

const percent = (share: number) => `${Math.round(share * 100)} %`
const code = (words: string[]) => words.map((word) => `\`${word}\``).join(', ')

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), `|${head.map(() => '-').join('|')}|`, ...rows.map(line)].join('\n')
}
