import type { AttackClass } from './attacks.ts'
import type { JudgedRow } from './measures.ts'

export interface Goal {
  goal: string
  measured: string
  /** Null where it is only reported, or where there are no rows. */
  isMet: boolean | null
}

type Attacked = JudgedRow & { attack: NonNullable<JudgedRow['attack']> }

export const attacksOf = (rows: JudgedRow[]): Attacked[] =>
  rows.flatMap((row) => (row.attack ? [{ ...row, attack: row.attack }] : []))

// A page cannot tell these from a hand, or from an extension that people use.
const isHandLike = ({ framework }: JudgedRow) =>
  framework === 'xdotool' || framework === 'extension'
const isEmulatedPhone = (row: JudgedRow) => row.kind !== 'person' && row.case.includes('-phone')
const lies = (row: JudgedRow) => row.case.includes('user-agent-switcher')

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

/** Compares the rows with what detection has to reach. */
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
  // Input that differs by more than copies do is no sign of a mass run.
  const isVaried = (row: JudgedRow) => row.case.startsWith('forger-mass-varied')
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
      goal: 'Where the claimed engine was taught, no forger is human: 60 of them at least, without an oracle',
      measured: `${passing.text} human`,
      isMet: passing.count === 0 && taught.length >= 60,
    },
    {
      goal: 'Where it was not, none is human with implausible answers or without input',
      measured: `${weak.text} human`,
      isMet: weak.count === 0,
    },
    {
      goal: 'Where it was not, with plausible answers and copied input',
      measured: `${share(untaught.filter(hasBoth), isHuman).text} human`,
      isMet: null,
    },
    {
      goal: 'From the tenth session of a mass run on, none is human',
      measured: `${share(from, isHuman).text} human`,
      isMet: share(from, isHuman).count === 0,
    },
    {
      goal: 'From the tenth session on, with copied input varied by 30 %',
      measured: `${
        share(
          of('mass').filter((row) => isVaried(row) && (row.nth ?? 0) >= 10),
          isHuman,
        ).text
      } human`,
      isMet: null,
    },
    {
      goal: "With a table of one address's questions of the day",
      measured: `${share(collected, isHuman).text} human`,
      isMet: null,
    },
    { goal: 'With a live oracle', measured: `${share(oracles, isHuman).text} human`, isMet: null },
  ]
}

function goalsOfAutomation(rows: JudgedRow[]): Goal[] {
  const acting = rows.filter(({ kind }) => kind === 'acting')
  const plain = acting.filter((row) => !isHandLike(row))
  const [caught, passing] = [share(plain, isBot), share(plain, isHuman)]
  const phones = share(rows.filter(isEmulatedPhone), isHuman)
  const hands = acting.filter(isHandLike).map((row) => `${row.case} ${row.verdict} ${row.score}`)
  return [
    {
      goal: 'Of automation that acts 90 % are bot, and none is human',
      measured: `${caught.text} bot, ${passing.count} human`,
      isMet: caught.count >= 0.9 * plain.length && passing.count === 0,
    },
    { goal: 'Hand-like automation, apart', measured: hands.join(', '), isMet: null },
    {
      goal: 'No emulated phone is human',
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
    { goal: 'No person is bot', measured: `${accused.text} bot`, isMet: accused.count === 0 },
    {
      goal: 'On a taught deployment 1 person in 40 is inconclusive at most, extensions that lie left out',
      measured: `${doubted.text} inconclusive`,
      isMet: doubted.count * 40 <= people.length - fresh.length,
    },
    {
      goal: 'On a fresh one people are inconclusive only because their engine is not learned',
      measured: `${share(fresh, isInconclusive).text} inconclusive, ${freshly.count} for another reason`,
      isMet: freshly.count === 0,
    },
  ]
}
