import { hash } from 'node:crypto'
import {
  inputProfileOf,
  serializeInputProfile,
} from '../../../projections/repeats/input-profile.ts'
import type { NearRepeats } from '../../../projections/repeats/near-repeats.ts'
import type { Repeats, SessionScored } from '../../../schemas/events.ts'
import type { Behavior, Snapshot } from '../../../schemas/observations.ts'
import type { Facts } from '../session/facts.ts'
import { hasNaturalInput } from './behavior.ts'
import { defineSignals, type Fires, type SignalText } from './signal.ts'

export type RepeatHashes = Pick<SessionScored, 'snapshot_hash' | 'behavior_hash'>

/**
 * Returns the hashes that sessions are compared by. Each is a hash of all values, then a dot, then the values for the
 * comparison of sessions with different hashes.
 */
export function hashesOf({ snapshot, behavior }: Facts): RepeatHashes {
  return {
    snapshot_hash:
      snapshot && `${sha256(machineOf(snapshot))}.${sha256(coreOf(snapshot)).slice(0, 16)}`,
    behavior_hash: behavior && inputHash(behavior, snapshot),
  }
}

// Input that others may have by chance gets no hash and no digests: it is compared only within bursts from one address.
function inputHash(behavior: Behavior, snapshot: Snapshot | null): string | null {
  const profile = inputProfileOf(behavior)
  if (!isUnique(behavior, snapshot)) return profile && `.....${profile.numbers}`
  return profile ? `${sha256(behavior)}.${serializeInputProfile(profile)}` : sha256(behavior)
}

const sha256 = (value: object) => hash('sha256', JSON.stringify(value))

const appMembers = [
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

// Leaves out values that change between two visits of one browser: window, zoom, permissions, voices that load late,
// and answers to a document's questions.
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
  Object.fromEntries(appMembers.map((name) => [name, native[name]]))

// Members that a replay can't change without failing the challenge: graphics, canvas, audio and fonts.
const coreOf = ({ canvas, audio, webgl, fonts }: Snapshot): object => [
  [canvas.geometry_hash, canvas.text_hash, audio.hash],
  [webgl.renderer, webgl.parameters_hash, fonts.metrics_hash],
]

// Fewer events can be equal by chance.
const minEvents = 20

// Requires enough events with varying intervals, so that nobody else has the same numbers by chance. If the browser
// rounds its clock to 100 ms, only mouse events count.
function isUnique({ mouse, keyboard, touch }: Behavior, snapshot: Snapshot | null): boolean {
  const isCoarse = snapshot?.tamper.timer_precision_reduced === true
  const channels = isCoarse ? [mouse] : [mouse, keyboard, touch]
  const timed = channels.filter(({ interval_std }) => interval_std !== null && interval_std > 0)
  return timed.reduce((sum, { events }) => sum + events, 0) >= minEvents
}

const ifCounted = (test: (repeats: Repeats) => boolean): Fires => {
  return ({ repeats }) => repeats !== null && test(repeats)
}

const replaysBehavior = ({ behavior_sessions }: Repeats) => behavior_sessions.day > 1
const replaysSnapshot = ({ snapshot_sessions }: Repeats) => snapshot_sessions.day > 1
// A session every five seconds: more than a school class with identical machines that are matched to one visitor.
const hasTooManySessions = ({ visitor_sessions }: Repeats) => visitor_sessions.five_minutes > 60

const ifNear = (test: (near: NearRepeats, repeats: Repeats) => boolean): Fires => {
  return ({ near, repeats }) => near !== null && repeats !== null && test(near, repeats)
}

const countDetails = (text: (near: NearRepeats, repeats: Repeats) => string): SignalText => {
  return ({ near, repeats }) => near && repeats && text(near, repeats)
}
const equalSessions = countDetails(
  (_, { behavior_sessions }) => `${behavior_sessions.day} sessions within a day`,
)

// More than the equal sessions, which have their own signal.
const replaysNearly = (near: NearRepeats, { behavior_sessions }: Repeats) =>
  near.sessions > Math.max(1, behavior_sessions.day)

const burstSize = 10
const isBurst = ({ in_minute, in_seconds }: NearRepeats) =>
  in_minute >= burstSize || in_seconds >= 6

const manyVisitors = 10
// True if some input is nearly the same, or a third of the visitors have the same pace.
const repeatsInput = (near: NearRepeats, { address_visitors }: Repeats) =>
  near.at_address >= 3 ||
  (isBurst(near) && near.copies > 0) ||
  (near.pace_visitors >= 8 && near.pace_visitors * 3 >= address_visitors.day)

// Gaps between random arrivals deviate by about 100 % of their mean.
const steadyPercent = 25
const isSteady = ({ gap_deviation }: NearRepeats) =>
  gap_deviation !== null && gap_deviation < steadyPercent
// At least nine of ten sessions have a visitor of their own.
const areMostlyNewVisitors = ({
  address_sessions: sessions,
  address_visitors: visitors,
}: Repeats) => visitors.hour >= 20 && visitors.hour >= 0.9 * sessions.hour

/** Returns true for natural input that can be compared, and isn't a copy of recent input from the same address. */
const hasUniqueInput = (facts: Facts, { sessions, copies }: NearRepeats) =>
  sessions > 0 && copies === 0 && hasNaturalInput(facts)

// True if a stored id proves that the visitor came before the last hour, unless a program keeps resending that id.
const hasReturned = ({ visitorSessions }: Facts, { visitor_sessions }: Repeats) =>
  visitorSessions > visitor_sessions.hour && visitor_sessions.five_minutes < burstSize

/**
 * Signals that compare a session with others of its organization and environment. Identical machines and shared
 * addresses are no risk: device fleets are identical, and carriers, schools and offices share addresses.
 */
export const repeatSignals = defineSignals({
  replayed_behavior: {
    name: 'Input replayed from another session',
    looksAt:
      'the summary of at least 20 timed input events equals that of another session within a day',
    falsePositives: 'a body that was resent in a new session after its response was lost',
    details: equalSessions,
    fires: ifCounted(replaysBehavior),
  },
  replayed_session: {
    name: 'Whole session replayed',
    looksAt: 'input and device data both equal those of another session within a day',
    falsePositives: 'as for `replayed_behavior`',
    details: equalSessions,
    fires: ifCounted((repeats) => replaysBehavior(repeats) && replaysSnapshot(repeats)),
  },
  nearly_replayed_behavior: {
    name: 'Input nearly identical to another session',
    looksAt:
      'each number in the input summary is within a few percent of that of another session within a day',
    falsePositives:
      'as for `replayed_behavior`; by chance, less than one in a hundred million pairs of people',
    details: countDetails((near) => `${near.sessions} sessions within a day`),
    fires: ifNear(replaysNearly),
  },
  nearly_replayed_session: {
    name: 'Session nearly identical to another',
    looksAt: '`nearly_replayed_behavior`, with equal graphics, canvas, audio and fonts',
    falsePositives: 'as for `nearly_replayed_behavior`',
    details: countDetails((near) => `${near.on_machine} sessions within a day`),
    fires: ifNear((near, repeats) => replaysNearly(near, repeats) && near.on_machine > 1),
  },
  replayed_snapshot: {
    name: 'Identical device data',
    looksAt: 'another session within a day reported identical device data',
    falsePositives:
      'no risk: returning visitors, phones of one model and device fleets are identical',
    fires: ifCounted(replaysSnapshot),
  },
  velocity_visitor: {
    name: 'Too many sessions for one visitor',
    looksAt: 'the visitor opened more than 60 sessions within 5 minutes',
    falsePositives:
      'test machines; identical computers that start at once and are matched to one visitor',
    details: countDetails(
      (_, { visitor_sessions }) => `${visitor_sessions.five_minutes} sessions within five minutes`,
    ),
    fires: ifCounted(hasTooManySessions),
  },
  mass_produced_visitors: {
    name: 'New visitors with identical input from one address',
    looksAt:
      'at least 10 visitors came from one address within a day, this one is new, and their input repeats: three sessions are nearly identical, a burst contains a copy, or at least eight visitors and a third of all have the same pace. Identical devices do not count',
    falsePositives: 'automated tests of a site from one office',
    details: countDetails(
      ({ at_address, pace_visitors }, { address_visitors }) =>
        `${address_visitors.day} visitors within a day, ${at_address} sessions with nearly identical input, ${pace_visitors} visitors with the same pace`,
    ),
    fires: (facts) =>
      facts.visitorSessions === 1 &&
      ifNear(
        (near, repeats) =>
          repeats.address_visitors.day >= manyVisitors && repeatsInput(near, repeats),
      )(facts),
  },
  steady_arrivals: {
    name: 'New visitors at a steady rate',
    looksAt:
      'at least 20 visitors with few repeat sessions came from one address within an hour, this one is new, and the gaps between sessions deviate by less than a quarter of their mean',
    falsePositives: 'identical computers that a program starts one after another',
    details: countDetails(
      ({ gap_seconds, gap_deviation }, { address_sessions }) =>
        `${address_sessions.hour} sessions within an hour, one every ${gap_seconds} s ± ${gap_deviation}%`,
    ),
    fires: (facts) =>
      facts.visitorSessions === 1 &&
      ifNear((near, repeats) => areMostlyNewVisitors(repeats) && isSteady(near))(facts),
  },
  mass_run: {
    name: 'Burst of sessions from one address',
    looksAt:
      'ten sessions within a minute, or six within 15 seconds, came from one address; this one has no natural input, or a copy of other input from there, and its visitor was not seen more than an hour ago',
    falsePositives: 'people behind a shared address before they use pointer, keyboard or touch',
    fires: (facts) =>
      facts.answers.judgedBy !== 'simulated' &&
      ifNear(
        (near, repeats) =>
          isBurst(near) && !hasUniqueInput(facts, near) && !hasReturned(facts, repeats),
      )(facts),
  },
  velocity_users: {
    name: 'Many users on one visitor',
    looksAt: "the visitor's sessions within a day have at least 10 client user ids",
    falsePositives: 'kiosks, library computers, support staff, test machines',
    fires: ifCounted(({ visitor_users }) => visitor_users.day >= 10),
  },
  visitor_many_addresses: {
    name: 'Visitor with many addresses',
    looksAt: "the visitor's sessions within an hour came from at least 10 addresses",
    falsePositives: 'carriers and relays that change the address for each connection',
    fires: ifCounted(({ visitor_addresses }) => visitor_addresses.hour >= 10),
  },
  velocity_address: {
    name: 'High traffic from IP',
    looksAt: 'at least 100 sessions within 5 minutes came from the address',
    falsePositives: 'no risk: carriers, schools and offices share addresses',
    fires: ifCounted(({ address_sessions }) => address_sessions.five_minutes >= 100),
  },
  user_many_visitors: {
    name: 'User with many visitors',
    looksAt: 'sessions of at least 8 visitors within a day have the same client user id',
    falsePositives: 'no risk: shared accounts, and browsers that clear their storage',
    fires: ifCounted(({ user_visitors }) => user_visitors.day >= 8),
  },
}).map((signal) => ({ ...signal, usesHistory: true as const }))

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

/** Returns true for signals of mass-produced sessions. */
export const showsMassProduction = ({ slug }: { slug: string }): boolean =>
  massProduced.includes(slug)

/** Returns true if any signal of mass production fires. */
export const isMassProduced = (facts: Facts): boolean =>
  repeatSignals.some((signal) => showsMassProduction(signal) && signal.fires(facts))
