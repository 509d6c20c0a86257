import { type Behavior, behaviorSchema } from '../../../../schemas/observations.ts'
import type { SimulatedActor } from './bots.ts'
import type { SeededRandom } from './random.ts'

interface BehaviorOptions {
  actor: SimulatedActor
  mobile: boolean
  durationMs: number
  random: SeededRandom
}

/** Returns the behavior between two batches: irregular and curved for a person, regular and straight for a program. */
export function behaviorOf({ actor, mobile, durationMs, random }: BehaviorOptions): Behavior {
  if (actor !== 'human') {
    const pointer = mobile
      ? { touch: programTouch(random) }
      : { mouse: programMouse(actor, random) }
    return behaviorSchema.parse({ ...pointer, ...programRest(random) })
  }
  const pointer = mobile
    ? { touch: personTouch(durationMs, random) }
    : { mouse: personMouse(durationMs, random) }
  return behaviorSchema.parse({ ...pointer, ...personRest(durationMs, random) })
}

function personMouse(durationMs: number, random: SeededRandom) {
  const moves = random.int(30, 140)
  const clicks = random.int(0, 4)
  return {
    events: moves + clicks,
    duration_ms: durationMs - random.int(50, 400),
    interval_mean: random.between(14, 28),
    interval_std: random.between(6, 40),
    moves,
    clicks,
    activations: clicks,
    straightness: random.between(1.04, 1.6),
    speed_std: random.between(0.3, 2.5),
  }
}

function programMouse(actor: SimulatedActor, random: SeededRandom) {
  const clicks = random.int(1, 4)
  const moves = random.int(0, 3)
  return {
    events: moves + clicks,
    untrusted: actor === 'scripted' ? clicks : 0,
    duration_ms: random.int(5, 60),
    interval_mean: random.between(1, 5),
    interval_std: random.between(0, 0.4),
    moves,
    clicks,
    activations: actor === 'scripted' ? 0 : clicks,
    clicks_without_move: clicks,
    clicks_exact_center: clicks,
    screen_equals_client: moves,
    straightness: 1,
    speed_std: 0,
  }
}

function personTouch(durationMs: number, random: SeededRandom) {
  const touches = random.int(2, 12)
  return {
    events: touches * random.int(3, 9),
    duration_ms: durationMs - random.int(50, 400),
    interval_mean: random.between(60, 240),
    interval_std: random.between(20, 160),
    touches,
    radius_std: random.between(0.8, 5),
  }
}

function programTouch(random: SeededRandom) {
  const touches = random.int(1, 4)
  return {
    events: touches * 2,
    duration_ms: 10,
    interval_mean: 2,
    interval_std: 0,
    touches,
    radius_std: 0,
  }
}

function personRest(durationMs: number, random: SeededRandom) {
  const keys = random.chance(0.5) ? random.int(4, 40) : 0
  const wheel = random.int(0, 20)
  return {
    keyboard: keys === 0 ? {} : personKeys(keys, durationMs, random),
    scroll: {
      events: wheel,
      wheel,
      distance: wheel * random.int(80, 120),
      interval_mean: 30,
      interval_std: 22,
    },
    form: keys === 0 ? {} : { events: 3, focuses: 2, changes: 1, submits: 0, silent_changes: 0 },
    clipboard: random.chance(0.1) ? { events: 1, pastes: 1 } : {},
  }
}

function personKeys(keys: number, durationMs: number, random: SeededRandom) {
  return {
    events: keys * 2,
    duration_ms: durationMs - random.int(100, 600),
    interval_mean: random.between(110, 320),
    interval_std: random.between(40, 180),
    keys,
    hold_mean: random.between(60, 130),
    hold_std: random.between(12, 50),
    rollovers: random.int(1, 1 + Math.ceil(keys / 5)),
    corrections: random.int(0, 3),
  }
}

function programRest(random: SeededRandom) {
  const keys = random.int(8, 40)
  const steady = { interval_mean: 1, interval_std: 0, hold_mean: 0.1, hold_std: 0 }
  const form = { events: 4, focuses: 2, changes: 2, submits: 1, silent_changes: 2 }
  return {
    keyboard: { events: keys * 2, duration_ms: keys, keys, ...steady },
    form: { ...form, time_to_submit_ms: random.int(20, 200) },
  }
}
