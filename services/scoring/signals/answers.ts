import type { EngineFamily } from '../../../infra/challenges/challenges.ts'
import { refusalCount } from '../session/completeness.ts'
import { hasNaturalInput } from './behavior.ts'
import { isMassProduced } from './repeats.ts'
import { defineSignals, ifBrowser, ifSnapshot } from './signal.ts'

const engineNames: Record<EngineFamily, string> = {
  blink: 'Blink',
  gecko: 'Gecko',
  webkit: 'WebKit',
  webkitgtk: 'WebKitGTK',
}

export const answerSignals = defineSignals({
  stale_snapshot: {
    name: 'Answers for another document',
    looksAt: 'the answers in the snapshot are not keyed by the challenge of its document',
    falsePositives: 'none',
    fires: ifSnapshot(
      (_, { answers, platform }) => platform === 'web' && answers.proof === 'wrong',
    ),
  },
  proofs_missing: {
    name: 'Challenge not answered',
    looksAt:
      'the snapshot of a page has neither keyed answers nor the challenge texts of its document',
    falsePositives: 'none; every SDK sends them',
    fires: ifSnapshot(
      (_, { answers, platform, document }) =>
        platform === 'web' && document !== null && answers.proof === 'none',
    ),
  },
  engine_contradicted: {
    name: 'Answers of another engine',
    looksAt:
      'more than half of the engine questions are answered differently than by the claimed browser',
    falsePositives: 'user agent switchers',
    fires: ifBrowser((_, { answers }) => answers.engine === 'contradicted'),
  },
  engine_unproven: {
    name: 'Engine not proven',
    looksAt:
      'engine questions are not answered as by the claimed browser, or the right answers are unknown',
    falsePositives:
      'browsers with their own engine, versions far from any known one, SDKs before 0.2',
    fires: ifBrowser(
      (_, { answers, platform }) =>
        platform === 'web' && /^(unanswered|unknown)$/.test(answers.engine),
    ),
  },
  answers_to_come: {
    name: 'Answers still pending',
    looksAt:
      "the deployment's own questions come after the snapshot and are answered in the next body",
    falsePositives: 'every visit until then, people who leave immediately',
    fires: ifBrowser(
      (_, { answers, platform }) => platform === 'web' && answers.engine === 'pending',
    ),
  },
  engine_not_learned: {
    name: 'Engine not learned yet',
    looksAt:
      "this deployment has not learned the engine's answers to its own questions, and the session has no natural input or looks mass-produced",
    falsePositives:
      'people before they use pointer, keyboard or touch, until `tidegate learn` was run',
    usesHistory: true,
    details: ({ answers: { notLearned } }) =>
      notLearned &&
      `${engineNames[notLearned.engine]}, ${notLearned.visitors} of ${notLearned.needed} visitors`,
    fires: ifBrowser(
      (_, facts) =>
        facts.platform === 'web' &&
        facts.answers.notLearned !== null &&
        (!hasNaturalInput(facts) || isMassProduced(facts)),
    ),
  },
  canvas_contradicted: {
    name: 'Canvas differs from similar devices',
    looksAt:
      'the canvas drawing matches no drawing by devices with the same renderer, system and browser',
    falsePositives: 'at most 2 in 100 devices of a class that draws alike',
    fires: ifBrowser((_, { answers }) => answers.canvas === 'differs'),
  },
  telemetry_incomplete: {
    name: 'Incomplete telemetry',
    looksAt: 'members are absent that the SDK always sends; `evidence.missing` names them',
    falsePositives: 'a cached SDK before 0.3 in a browser that blocks a part',
    fires: ({ missing }) => missing.length > 0,
  },
  telemetry_withheld: {
    name: 'Several snapshot parts blocked',
    looksAt:
      'two or more parts of the snapshot, except the worker, are blocked or unsupported; `evidence.withheld` names them',
    falsePositives: 'people who block graphics, canvas and audio together',
    fires: ({ withheld }) => refusalCount(withheld) > 1,
  },
  telemetry_late: {
    name: 'Slow page',
    looksAt:
      'parts of the snapshot were not ready at the hand-off; a later hand-off is decided again',
    falsePositives: 'slow machines: required evidence is missing, but nothing suggests automation',
    fires: ({ withheld }) => withheld.some(({ reason }) => reason === 'late'),
  },
  impossible_values: {
    name: 'Impossible values',
    looksAt: 'a member has a value that no browser has; `evidence.impossible` names it',
    falsePositives:
      "tools that change brands or sizes carelessly; a time zone newer than the server's data",
    fires: ({ impossible }) => impossible.length > 0,
  },
  window_larger_than_screen: {
    name: 'Window larger than the screen',
    looksAt: 'the window exceeds the screen by more than its frame',
    falsePositives:
      'windows across several monitors, zoom that scales screen and window differently',
    fires: ifBrowser(
      ({ environment: e }) =>
        exceeds(e.outer_width, e.screen_width) || exceeds(e.outer_height, e.screen_height),
    ),
  },
})

// Maximized windows extend beyond the screen by their frame.
const frameSize = 32

function exceeds(window: number | null, screen: number | null): boolean {
  return window !== null && screen !== null && screen > 0 && window > screen + frameSize
}
