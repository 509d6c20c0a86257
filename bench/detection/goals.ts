import type { AttackClass } from './attacks.ts'
import type { Kind } from './cases.ts'
import type { JudgedRow } from './measures.ts'

export interface Goal {
  goal: string
  measured: string
  /** null if the goal is only reported, or there are no rows. */
  isMet: boolean | null
  /** True if the report counts it by attack. */
  isOfAttack?: true
}

type Attacked = JudgedRow & { attack: NonNullable<JudgedRow['attack']> }

export const attacksOf = (rows: JudgedRow[]): Attacked[] =>
  rows.flatMap((row) => (row.attack ? [{ ...row, attack: row.attack }] : []))

// A page cannot distinguish these from a person's input or an ordinary extension.
const isHandLike = ({ framework }: JudgedRow) =>
  framework === 'xdotool' || framework === 'extension'
const isEmulatedPhone = (row: JudgedRow) => row.kind !== 'person' && row.case.includes('-phone')
const lies = (row: JudgedRow) => row.case.includes('user-agent-switcher')

// Input that varies more than copies is not evidence of a mass run.
export const isVaried = (row: JudgedRow): boolean => row.case.startsWith('forger-mass-varied')

const isHuman = ({ verdict }: JudgedRow) => verdict === 'human'
const isBot = ({ verdict }: JudgedRow) => verdict === 'bot'
const isInconclusive = ({ verdict }: JudgedRow) => verdict === 'inconclusive'
const hasFired = ({ signals_fired: fired }: JudgedRow, which: RegExp) =>
  fired.some(({ signal }) => which.test(signal))

function share(
  rows: JudgedRow[],
  is: (row: JudgedRow) => boolean,
): { count: number; text: string } {
  const count = rows.filter(is).length
  return { count, text: `${count} of ${rows.length}` }
}

/** Compares the rows with the detection goals. */
export function goalsOf(rows: JudgedRow[]): Goal[] {
  const goals = [
    ...goalsOfForgers(attacksOf(rows)),
    ...goalsOfAutomation(rows),
    ...goalsOfPeople(rows),
  ]
  return goals.map((goal) =>
    /^0 of 0\b/.test(goal.measured) ? { ...goal, measured: '', isMet: null } : goal,
  )
}

function goalsOfForgers(attacks: Attacked[]): Goal[] {
  const of = (attackClass: AttackClass) =>
    attacks.filter(({ attack }) => attack.class === attackClass)
  const [oracles, collected] = [of('oracle'), of('collected')]
  const mass = of('mass').filter((row) => !isVaried(row))
  const single = attacks.filter(({ attack }) => !/^(mass|oracle|collected)$/.test(attack.class))
  const taught = single.filter(({ attack }) => attack.isTaught)
  const untaught = single.filter(({ attack }) => !attack.isTaught)
  const hasBoth = ({ attack }: Attacked) => attack.isPlausible && attack.hasInput
  const passing = share(taught, isHuman)
  const weak = share(
    untaught.filter((row) => !hasBoth(row)),
    isHuman,
  )
  const from = mass.filter(({ nth = 0 }) => nth >= 10)
  return [
    {
      goal: 'Forged sessions without an oracle, where the engine was taught (at least 60): none human',
      measured: `${passing.text} human`,
      isMet: passing.count === 0 && taught.length >= 60,
    },
    {
      goal: 'Forged sessions with implausible answers or without input, where the engine is not taught: none human',
      measured: `${weak.text} human`,
      isMet: weak.count === 0,
    },
    {
      goal: 'Engine not taught, plausible answers and copied input',
      measured: `${share(untaught.filter(hasBoth), isHuman).text} human`,
      isMet: null,
      isOfAttack: true,
    },
    {
      goal: 'Mass runs, from the tenth session on: none human',
      measured: `${share(from, isHuman).text} human`,
      isMet: share(from, isHuman).count === 0,
    },
    {
      goal: 'Mass run with copied input varied by 30 %, from the tenth session on',
      measured: `${
        share(
          of('mass').filter((row) => isVaried(row) && (row.nth ?? 0) >= 10),
          isHuman,
        ).text
      } human`,
      isMet: null,
      isOfAttack: true,
    },
    {
      goal: "Answers to one address's questions of the day",
      measured: `${share(collected, isHuman).text} human`,
      isMet: null,
      isOfAttack: true,
    },
    {
      goal: 'With a live oracle',
      measured: `${share(oracles, isHuman).text} human`,
      isMet: null,
      isOfAttack: true,
    },
  ]
}

function goalsOfAutomation(rows: JudgedRow[]): Goal[] {
  const acting = rows.filter(({ kind }) => kind === 'acting')
  const plain = acting.filter((row) => !isHandLike(row))
  const [caught, passing] = [share(plain, isBot), share(plain, isHuman)]
  const phones = share(rows.filter(isEmulatedPhone), isHuman)
  const hands = acting
    .filter(isHandLike)
    .map((row) => `${row.case} ${row.verdict} (score ${row.score})`)
  const counted = (...which: Kind[]) => {
    const found = rows.filter(({ kind }) => which.includes(kind))
    return `${share(found, isBot).text} bot, ${share(found, isHuman).count} human`
  }
  return [
    {
      goal: 'Automation that clicks or types: at least 90 % bot, none human',
      measured: `${caught.text} bot, ${passing.count} human`,
      isMet: caught.count >= 0.9 * plain.length && passing.count === 0,
    },
    { goal: 'Automation with human-like input', measured: hands.join(', '), isMet: null },
    { goal: 'Automation that only loads the page', measured: counted('loading'), isMet: null },
    { goal: 'Automation with an evasion script', measured: counted('evasion'), isMet: null },
    {
      goal: 'Other scripts without a browser',
      measured: counted('forgery', 'informed', 'informed-fresh'),
      isMet: null,
    },
    {
      goal: 'Emulated phones: none human',
      measured: `${phones.text} human`,
      isMet: phones.count === 0,
    },
  ]
}

function goalsOfPeople(rows: JudgedRow[]): Goal[] {
  const people = rows.filter((row) => row.kind === 'person' && !lies(row))
  const fresh = people.filter(({ isFresh }) => isFresh)
  const doubted = share(
    people.filter(({ isFresh }) => !isFresh),
    isInconclusive,
  )
  const accused = share(
    rows.filter(({ kind }) => kind === 'person'),
    isBot,
  )
  const hasReason = (row: JudgedRow) =>
    hasFired(row, /^engine_not_learned$/) && !hasFired(row, /^natural_/)
  const freshly = share(fresh, (row) => isInconclusive(row) && !hasReason(row))
  return [
    { goal: 'People: none bot', measured: `${accused.text} bot`, isMet: accused.count === 0 },
    {
      goal: 'People on the taught server, without user agent switchers: at most 1 person in 40 inconclusive',
      measured: `${doubted.text} inconclusive`,
      isMet: doubted.count * 40 <= people.length - fresh.length,
    },
    {
      goal: 'People on a fresh server: inconclusive only because their engine is not learned',
      measured: `${share(fresh, isInconclusive).text} inconclusive, ${freshly.count} for another reason`,
      isMet: freshly.count === 0,
    },
  ]
}
