import { onlyActing } from './automation.ts'
import type { Case } from './cases.ts'
import { openers } from './people.ts'
import { extension } from './persons.ts'
import { browserVersions } from './versions.ts'
import { type Person, visitBy } from './visit.ts'

type Driven = Person & { framework: string }

/** Programs that drive a browser from outside. The last one uses the same input as people here. */
const driven: Driven[] = [
  {
    name: 'extension-driven',
    framework: 'extension',
    browser: 'Chromium',
    flags: extension('driver'),
    extends: true,
    way: 'extension',
  },
  { name: 'xdotool-jump', framework: 'xdotool', browser: 'Chromium', way: 'jump' },
  { name: 'xdotool-human', framework: 'xdotool', browser: 'Chromium' },
]

export const desktopCases: Case[] = driven.map((each) =>
  onlyActing({
    name: each.name,
    kind: 'automation',
    family: each.browser,
    framework: each.framework,
    version: browserVersions().Chromium ?? '',
    run: (stage, onOutcome) => visitBy(each, { stage, onOutcome, open: openers[each.browser] }),
  }),
)
