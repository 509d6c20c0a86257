import { refusals } from '../session/completeness.ts'
import { inBrowser, signals, snapshot } from './signal.ts'

// What has to be earned: until then a session is not human.
const unearned = 45

export const answerSignals = signals(
  { role: 'risk', category: 'integrity' },
  {
    stale_snapshot: {
      channel: 'protocol',
      name: 'Snapshot answers another document',
      strength: 'strong',
      score: 55,
      atLeast: unearned,
      looksAt: 'the answers of a snapshot are not keyed by what its document was given',
      falsePositives: 'none known',
      fires: snapshot((_, { answers, platform }) => platform === 'web' && answers.given === 'wrong'),
    },
    proofs_missing: {
      channel: 'protocol',
      name: 'Snapshot answers no document',
      strength: 'strong',
      score: 60,
      atLeast: unearned,
      looksAt: 'the snapshot of a page has neither keyed answers nor the texts that its document was given',
      falsePositives: 'none known; every SDK sends them',
      fires: snapshot(
        (_, { answers, platform, document }) =>
          platform === 'web' && document !== null && answers.given === 'none',
      ),
    },
    engine_contradicted: {
      channel: 'identity',
      name: 'Engine answers as another one',
      category: 'fingerprint',
      strength: 'strong',
      score: 55,
      atLeast: unearned,
      looksAt:
        'more than half of the questions about the engine are answered otherwise than the claimed browser answers',
      falsePositives: 'user agent switchers',
      fires: inBrowser((_, { answers }) => answers.engine === 'otherwise'),
    },
    engine_unproven: {
      channel: 'completeness',
      name: 'Engine not proven',
      strength: 'moderate',
      score: 20,
      atLeast: unearned,
      looksAt:
        'the questions about the engine are not answered, or not as the claimed browser does, or nobody knows how it does',
      falsePositives:
        'an SDK before 0.2 from a cache, browsers with an engine of their own, versions far from any that is known',
      fires: inBrowser(
        (_, { answers, platform }) => platform === 'web' && /^(unanswered|unknown)$/.test(answers.engine),
      ),
    },
    canvas_contradicted: {
      channel: 'canvas',
      name: 'Drawing differs from machines of its kind',
      category: 'fingerprint',
      strength: 'moderate',
      score: 30,
      looksAt:
        'the drawing of the document is none that sessions of the same renderer, system and browser made of it',
      falsePositives:
        'at most 2 in 100 of a class whose machines draw alike; a canvas with noise is not looked at',
      fires: inBrowser((_, { answers }) => answers.canvas === 'otherwise'),
    },
    telemetry_incomplete: {
      channel: 'completeness',
      name: 'Incomplete telemetry',
      strength: 'moderate',
      score: 35,
      atLeast: unearned,
      looksAt:
        'a member that the SDK always sends is missing, without a reason that its browser may have; `evidence.missing` names it',
      falsePositives: 'an SDK before 0.3 from a cache, in a browser that blocks a part',
      fires: ({ missing }) => missing.length > 0,
    },
    telemetry_withheld: {
      channel: 'completeness',
      name: 'Several parts withheld',
      strength: 'moderate',
      score: 15,
      atLeast: unearned,
      looksAt: 'two or more parts of the snapshot are blocked or unsupported; `evidence.withheld` names them',
      falsePositives: 'people who block workers, graphics, canvas and sound at once',
      fires: ({ withheld }) => refusals(withheld) > 1,
    },
    telemetry_late: {
      channel: 'slowness',
      name: 'The page was slow',
      strength: 'weak',
      score: 2,
      atLeast: 40,
      looksAt:
        'parts of the snapshot were not ready when the result was asked for; a later hand-off decides anew',
      falsePositives: 'slow machines: it says nothing against a person, only that nothing is earned yet',
      fires: ({ withheld }) => withheld.some(({ reason }) => reason === 'late'),
    },
    impossible_values: {
      channel: 'completeness',
      name: 'Impossible values',
      strength: 'moderate',
      score: 38,
      atLeast: unearned,
      looksAt: 'a value that no browser has; `evidence.impossible` names its member',
      falsePositives:
        'tools that change brands or sizes without care; a time zone newer than the data of the server',
      fires: ({ impossible }) => impossible.length > 0,
    },
    window_larger_than_screen: {
      channel: 'window',
      name: 'Window larger than the screen',
      category: 'environment',
      strength: 'weak',
      score: 8,
      looksAt: 'the window is wider or higher than the screen by more than its frame',
      falsePositives: 'windows over several monitors, zoom that changes the sizes of screen and window apart',
      fires: inBrowser(
        ({ environment: e }) =>
          exceeds(e.outer_width, e.screen_width) || exceeds(e.outer_height, e.screen_height),
      ),
    },
  },
)

// Maximized windows stand over the screen's edge by their frame.
const frame = 32

function exceeds(window: number | null, screen: number | null): boolean {
  return window !== null && screen !== null && screen > 0 && window > screen + frame
}
