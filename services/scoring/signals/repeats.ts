import { hash } from 'node:crypto'
import { handsOf, handsText } from '../../../projections/repeats/near.ts'
import type { NearRepeats } from '../../../projections/repeats/near-counts.ts'
import type { Repeats, SessionScored } from '../../../schemas/events.ts'
import type { Behavior, Snapshot } from '../../../schemas/observations.ts'
import type { Facts } from '../session/facts.ts'
import { hasNaturalInput } from './behavior.ts'
import { type Definition, type Details, signals } from './signal.ts'

export type Hashes = Pick<SessionScored, 'snapshot_hash' | 'behavior_hash'>

/**
 * By these a session is compared with others. Each is a hash of everything, followed after a dot by what is compared where
 * the hashes differ.
 */
export function hashesOf({ snapshot, behavior }: Facts): Hashes {
  return {
    snapshot_hash:
      snapshot && `${sha256(machineOf(snapshot))}.${sha256(coreOf(snapshot)).slice(0, 16)}`,
    behavior_hash: behavior && inputHash(behavior, snapshot),
  }
}

// Input that others may equal by chance has no hash and no digests; only a burst of one address is compared by it.
function inputHash(behavior: Behavior, snapshot: Snapshot | null): string | null {
  const hands = handsOf(behavior)
  if (!isUnique(behavior, snapshot)) return hands && `.....${hands.numbers}`
  return hands ? `${sha256(behavior)}.${handsText(hands)}` : sha256(behavior)
}

const sha256 = (value: object) => hash('sha256', JSON.stringify(value))

const ofApp = [
  ...([
    'device_model',
    'os_name',
    'os_version',
    'architecture',
    'bundle_id',
    'app_version',
  ] as const),
  ...([
    'app_build',
    'carrier_name',
    'country_iso',
    'jailbreak_or_root',
    'hooks',
    'debugger',
  ] as const),
  ...(['simulator_or_emulator', 'code_signing_invalid'] as const),
]

// The machine's own members, without those that change by themselves between two visits of one browser: windows,
// zoom, permissions, voices that load late, and every answer to a document's questions. Likewise of an app.
function machineOf({
  navigator: n,
  environment: e,
  canvas,
  audio,
  webgl,
  webgpu,
  ...s
}: Snapshot): object {
  const { connection_rtt: _, ...navigator } = n
  return [
    navigator,
    [
      e.screen_width,
      e.screen_height,
      e.color_depth,
      e.timezone,
      s.engine.name,
      s.engine.eval_length,
    ],
    [canvas.hash, canvas.geometry_hash, canvas.text_hash, audio.hash, audio.sample_rate],
    [webgl, webgpu, s.fonts, s.native ? appOf(s.native) : {}],
  ]
}

const appOf = (native: NonNullable<Snapshot['native']>) =>
  Object.fromEntries(ofApp.map((name) => [name, native[name]]))

// Members that a replay cannot change without giving wrong answers: how the machine draws and sounds, and its fonts.
const coreOf = ({ canvas, audio, webgl, fonts }: Snapshot): object => [
  [canvas.geometry_hash, canvas.text_hash, audio.hash],
  [webgl.renderer, webgl.parameters_hash, fonts.metrics_hash],
]

// Fewer events than this may be equal by chance.
const minEvents = 20

// Whether nobody else's input can be summed up in the same numbers: enough events with intervals. Where the browser
// rounds its clock to 100 ms, keys alone are not enough.
function isUnique({ mouse, keyboard, touch }: Behavior, snapshot: Snapshot | null): boolean {
  const isCoarse = snapshot?.tamper.timer_precision_reduced === true
  const channels = isCoarse ? [mouse] : [mouse, keyboard, touch]
  const timed = channels.filter(({ interval_std }) => interval_std !== null && interval_std > 0)
  return timed.reduce((sum, { events }) => sum + events, 0) >= minEvents
}

const repeated = (test: (repeats: Repeats) => boolean): Definition['fires'] => {
  return ({ repeats }) => repeats !== null && test(repeats)
}

const replaysBehavior = ({ behavior_sessions }: Repeats) => behavior_sessions.day > 1
const replaysSnapshot = ({ snapshot_sessions }: Repeats) => snapshot_sessions.day > 1
// One every five seconds: more than a school class whose equal machines are taken for one visitor.
const isTireless = ({ visitor_sessions }: Repeats) => visitor_sessions.five_minutes > 60

const nearly = (test: (near: NearRepeats, repeats: Repeats) => boolean): Definition['fires'] => {
  return ({ near, repeats }) => near !== null && repeats !== null && test(near, repeats)
}

const inNumbers = (text: (near: NearRepeats, repeats: Repeats) => string): Details => {
  return ({ near, repeats }) => near && repeats && text(near, repeats)
}
const inEqual = inNumbers(
  (_, { behavior_sessions }) => `${behavior_sessions.day} sessions within a day`,
)

// More than those that are equal to the last digit, which have a signal of their own.
const replaysNearly = (near: NearRepeats, { behavior_sessions }: Repeats) =>
  near.sessions > Math.max(1, behavior_sessions.day)

const massRun = 10
const isBurst = ({ in_minute, in_seconds }: NearRepeats) => in_minute >= massRun || in_seconds >= 6

const manyVisitors = 10
// Hands repeat: some are nearly the same, or a third of the visitors has one pace.
const repeatsHands = (near: NearRepeats, { address_visitors }: Repeats) =>
  near.at_address >= 3 ||
  (isBurst(near) && near.copies > 0) ||
  (near.pace_visitors >= 8 && near.pace_visitors * 3 >= address_visitors.day)

// Whoever comes by chance comes at gaps that deviate by as much as they last.
const steadyPercent = 25
const isSteady = ({ gap_deviation }: NearRepeats) =>
  gap_deviation !== null && gap_deviation < steadyPercent
// Nine of ten sessions are of a visitor of their own.
const areStrangers = ({ address_sessions: sessions, address_visitors: visitors }: Repeats) =>
  visitors.hour >= 20 && visitors.hour >= 0.9 * sessions.hour

/** Returns true where natural input is comparable and no copy of what the same address sent just now. */
const hasInputOfItsOwn = (facts: Facts, { sessions, copies }: NearRepeats) =>
  sessions > 0 && copies === 0 && hasNaturalInput(facts)

// An id says that the visitor came before the last hour, and is no id that a program sends again and again.
const hasReturned = ({ visitorSessions }: Facts, { visitor_sessions }: Repeats) =>
  visitorSessions > visitor_sessions.hour && visitor_sessions.five_minutes < massRun

/**
 * What a session has in common with others of its organization and environment. Neither an equal machine nor a shared
 * address is risk: fleets are equal, and carriers, schools and offices share addresses.
 */
export const repeatSignals = signals({
  replayed_behavior: {
    name: 'Behavior of another session',
    looksAt:
      'the summary of at least 20 timed events of input equals that of another session within a day',
    falsePositives: 'a body that was sent again in a new session, after its answer was lost',
    details: inEqual,
    fires: repeated(replaysBehavior),
  },
  replayed_session: {
    name: 'Whole session replayed',
    looksAt: 'behavior and machine both equal those of another session within a day',
    falsePositives: 'as for `replayed_behavior`',
    details: inEqual,
    fires: repeated((repeats) => replaysBehavior(repeats) && replaysSnapshot(repeats)),
  },
  nearly_replayed_behavior: {
    name: 'Behavior nearly that of another session',
    looksAt:
      'the summary of input is that of another session within a day, but for a few percent of each number',
    falsePositives:
      'as for `replayed_behavior`; by chance less than once in a hundred million pairs of people',
    details: inNumbers((near) => `${near.sessions} sessions within a day`),
    fires: nearly(replaysNearly),
  },
  nearly_replayed_session: {
    name: 'Session nearly replayed',
    looksAt: '`nearly_replayed_behavior`, and graphics, canvas, sound and fonts are equal too',
    falsePositives: 'as for `nearly_replayed_behavior`',
    details: inNumbers((near) => `${near.on_machine} sessions within a day`),
    fires: nearly((near, repeats) => replaysNearly(near, repeats) && near.on_machine > 1),
  },
  replayed_snapshot: {
    name: 'Machine equal to another',
    looksAt: 'another session within a day said the same of its machine',
    falsePositives: 'no risk: returning visitors, phones of one model and fleets are equal',
    fires: repeated(replaysSnapshot),
  },
  velocity_visitor: {
    name: 'More sessions than a person opens',
    looksAt: 'the visitor opened more than 60 sessions within 5 minutes',
    falsePositives:
      'test machines; equal computers that start at once and are taken for one visitor',
    details: inNumbers(
      (_, { visitor_sessions }) => `${visitor_sessions.five_minutes} sessions within five minutes`,
    ),
    fires: repeated(isTireless),
  },
  mass_produced_visitors: {
    name: 'New visitors of one address with the same hands',
    looksAt:
      'at least 10 visitors came from one address in a day, and this one is new. Hands repeat in three nearly equal sessions, or in the pace of eight visitors and a third of all. Equal machines do not count',
    falsePositives: 'automated tests of a site from one office',
    details: inNumbers(
      ({ at_address, pace_visitors }, { address_visitors }) =>
        `${address_visitors.day} visitors within a day, ${at_address} sessions with nearly the same hands, ${pace_visitors} visitors with one pace`,
    ),
    fires: (facts) =>
      facts.visitorSessions === 1 &&
      nearly(
        (near, repeats) =>
          repeats.address_visitors.day >= manyVisitors && repeatsHands(near, repeats),
      )(facts),
  },
  steady_arrivals: {
    name: 'New visitors at a steady rate',
    looksAt:
      'at least 20 visitors with hardly more sessions came from one address within an hour, and this one is new. Gaps between them deviate by less than a quarter of their mean',
    falsePositives: 'equal computers that a program starts one after the other',
    details: inNumbers(
      ({ gap_seconds, gap_deviation }, { address_sessions }) =>
        `${address_sessions.hour} sessions within an hour, one every ${gap_seconds} s, give or take ${gap_deviation} %`,
    ),
    fires: (facts) =>
      facts.visitorSessions === 1 &&
      nearly((near, repeats) => areStrangers(repeats) && isSteady(near))(facts),
  },
  mass_run: {
    name: 'Many sessions at once from one address',
    looksAt:
      'ten sessions within a minute, or six within 15 seconds, came from one address. This one has no natural input, or input that copies that of others there, and its visitor has not come before the last hour',
    falsePositives:
      'people behind a shared address who have not used pointer, keyboard or touch yet',
    fires: (facts) =>
      facts.answers.engineBy !== 'simulated' &&
      nearly(
        (near, repeats) =>
          isBurst(near) && !hasInputOfItsOwn(facts, near) && !hasReturned(facts, repeats),
      )(facts),
  },
  velocity_users: {
    name: 'Many users of one visitor',
    looksAt: 'sessions of the visitor within a day were given at least 10 client user ids',
    falsePositives: 'kiosks, library computers, support staff, test machines',
    fires: repeated(({ visitor_users }) => visitor_users.day >= 10),
  },
  visitor_many_addresses: {
    name: 'Visitor with many addresses',
    looksAt: "the visitor's sessions within an hour came from at least 10 addresses",
    falsePositives: 'carriers and relays that change the address with each connection',
    fires: repeated(({ visitor_addresses }) => visitor_addresses.hour >= 10),
  },
  velocity_address: {
    name: 'Busy address',
    looksAt: 'at least 100 sessions within 5 minutes came from the address',
    falsePositives: 'no risk: carriers, schools and offices share one',
    fires: repeated(({ address_sessions }) => address_sessions.five_minutes >= 100),
  },
  user_many_visitors: {
    name: 'User with many visitors',
    looksAt: 'the client user id was given to sessions of at least 8 visitors within a day',
    falsePositives: 'no risk: shared accounts, and browsers that clear their storage',
    fires: repeated(({ user_visitors }) => user_visitors.day >= 8),
  },
}).map((signal) => ({ ...signal, looksBack: true as const }))

const massProduced: readonly string[] = [
  'replayed_behavior',
  'replayed_session',
  'nearly_replayed_behavior',
  'nearly_replayed_session',
  'mass_produced_visitors',
  'steady_arrivals',
  'mass_run',
  'velocity_visitor',
]

/** Whether a signal says that sessions are made, and no visits. */
export const showsMassProduction = ({ slug }: { slug: string }): boolean =>
  massProduced.includes(slug)

/** Whether any of those signals fires. */
export const isMassProduced = (facts: Facts): boolean =>
  repeatSignals.some((signal) => showsMassProduction(signal) && signal.fires(facts))
