import type { EngineFamily } from '../../../infra/challenges/challenges.ts'
import { refusals } from '../session/completeness.ts'
import { hasNaturalInput } from './behavior.ts'
import { isMassProduced } from './repeats.ts'
import { inBrowser, signals, snapshot } from './signal.ts'

const engineNames: Record<EngineFamily, string> = {
  blink: 'Blink',
  gecko: 'Gecko',
  webkit: 'WebKit',
  webkitgtk: 'WebKitGTK',
}

export const answerSignals = signals({
  stale_snapshot: {
    name: 'Snapshot answers another document',
    looksAt: "the answers of a snapshot are not keyed by its document's challenge",
    falsePositives: 'none',
    fires: snapshot((_, { answers, platform }) => platform === 'web' && answers.proof === 'wrong'),
  },
  proofs_missing: {
    name: 'Snapshot answers no document',
    looksAt: 'the snapshot of a page has neither keyed answers nor the texts of its document',
    falsePositives: 'none; every SDK sends them',
    fires: snapshot(
      (_, { answers, platform, document }) =>
        platform === 'web' && document !== null && answers.proof === 'none',
    ),
  },
  engine_contradicted: {
    name: 'Engine answers as another one',
    looksAt:
      'more than half of the questions about the engine are answered otherwise than by the claimed browser',
    falsePositives: 'user agent switchers',
    fires: inBrowser((_, { answers }) => answers.engine === 'otherwise'),
  },
  engine_unproven: {
    name: 'Engine not proven',
    looksAt:
      'questions about the engine are not answered as the claimed browser does, or nobody knows how it does',
    falsePositives:
      'browsers with an engine of their own, versions far from any that is known, an SDK before 0.2',
    fires: inBrowser(
      (_, { answers, platform }) =>
        platform === 'web' && /^(unanswered|unknown)$/.test(answers.engine),
    ),
  },
  answers_to_come: {
    name: 'Own questions not answered yet',
    looksAt:
      "a document's own questions come after its snapshot, and are answered in the next body",
    falsePositives: 'every visit until then, and people who leave at once',
    fires: inBrowser(
      (_, { answers, platform }) => platform === 'web' && answers.engine === 'to_come',
    ),
  },
  engine_not_learned: {
    name: 'Engine not learned yet',
    looksAt:
      "this deployment has not learned how the engine answers its own questions, and no natural input speaks for a person (or the session looks mass-produced, so that its input doesn't)",
    falsePositives:
      'people who have not used pointer, keyboard or touch yet, until `tidegate learn` was run',
    looksBack: true,
    details: ({ answers: { notLearned } }) =>
      notLearned &&
      `${engineNames[notLearned.engine]}, ${notLearned.visitors} of ${notLearned.needed} visitors`,
    fires: inBrowser(
      (_, facts) =>
        facts.platform === 'web' &&
        facts.answers.notLearned !== null &&
        (!hasNaturalInput(facts) || isMassProduced(facts)),
    ),
  },
  canvas_contradicted: {
    name: 'Drawing differs from machines of its kind',
    looksAt: 'the drawing is none that sessions of the same renderer, system and browser made',
    falsePositives: 'at most 2 in 100 of a class whose machines draw alike',
    fires: inBrowser((_, { answers }) => answers.canvas === 'otherwise'),
  },
  telemetry_incomplete: {
    name: 'Incomplete telemetry',
    looksAt:
      '`evidence.missing` names a member, which the SDK always sends unless its browser has a reason',
    falsePositives: 'an SDK before 0.3 from a cache, in a browser that blocks a part',
    fires: ({ missing }) => missing.length > 0,
  },
  telemetry_withheld: {
    name: 'Several parts withheld',
    looksAt:
      'two or more parts of the snapshot, the worker aside, are blocked or unsupported; `evidence.withheld` names them',
    falsePositives: 'people who block graphics, canvas and sound at once',
    fires: ({ withheld }) => refusals(withheld) > 1,
  },
  telemetry_late: {
    name: 'The page was slow',
    looksAt: 'parts of the snapshot were not ready at the hand-off; a later one decides anew',
    falsePositives:
      'slow machines: it is no evidence against a person, but required evidence is missing',
    fires: ({ withheld }) => withheld.some(({ reason }) => reason === 'late'),
  },
  impossible_values: {
    name: 'Impossible values',
    looksAt: 'a value that no browser has; `evidence.impossible` names its member',
    falsePositives:
      'tools that change brands or sizes without care; a time zone newer than the data of the server',
    fires: ({ impossible }) => impossible.length > 0,
  },
  window_larger_than_screen: {
    name: 'Window larger than the screen',
    looksAt: 'the window is wider or higher than the screen by more than its frame',
    falsePositives:
      'windows over several monitors, zoom that changes the sizes of screen and window apart',
    fires: inBrowser(
      ({ environment: e }) =>
        exceeds(e.outer_width, e.screen_width) || exceeds(e.outer_height, e.screen_height),
    ),
  },
})

// Maximized windows stand over the screen's edge by their frame.
const frame = 32

function exceeds(window: number | null, screen: number | null): boolean {
  return window !== null && screen !== null && screen > 0 && window > screen + frame
}
