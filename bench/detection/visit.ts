import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  createSeededRandom,
  type SeededRandom,
} from '../../services/cli/simulate/generate/random.ts'
import type { Outcome, Stage } from './cases.ts'
import type { Rectangle } from './desktop.ts'
import { moveTo, type Point, pause, press, pressKey, typeText, wheel } from './hand.ts'
import { startProgram } from './program.ts'
import { openRewritingProxy, type RewritingProxy } from './proxy.ts'
import { judged, surroundings } from './run-driver.ts'
import { openScreen, type Screen } from './screens.ts'
import { createSlowGroup } from './throttle.ts'

export type Browser = 'Chromium' | 'Firefox' | 'WebKitGTK' | 'QtWebEngine'
/** `jump`: the pointer jumps to its target. `extension`: only an extension acts. */
type Way = 'mouse' | 'keyboard' | 'nothing' | 'jump' | 'extension'

export interface Person {
  name: string
  browser: Browser
  way?: Way
  /** Command-line flags of the browser. */
  flags?: string[]
  env?: Record<string, string>
  /** Lines of Firefox's user.js. */
  settings?: Record<string, string | boolean | number>
  /** xdotool arguments to run first, for example keys that zoom. */
  first?: string[]
  /** Screen pixels per CSS pixel, if the browser reports a false value. */
  ratio?: number
  /** Opens a page to which scriptlets of the content blocker apply. */
  scriptlets?: boolean
  /** True if the browser has an extension. */
  extends?: boolean
  /** Number of programs that use the CPU meanwhile. */
  busy?: number
  screen?: Screen
  /** True if requests go through a proxy that rewrites the user agent. */
  isProxied?: boolean
  /** True if the browser gets a twentieth of a CPU after it has requested the page. */
  isSlow?: boolean
}

const classes: Record<Browser, string> = {
  Chromium: 'chrom',
  Firefox: 'firefox',
  WebKitGTK: 'MiniBrowser',
  QtWebEngine: 'qutebrowser',
}

interface VisitBy {
  stage: Stage
  onOutcome: (outcome: Outcome) => void
  /** Returns the command that opens the browser, without the URL. */
  open(person: Person, profile: string): string[]
}

/** Opens the browser like a person, and uses the page only with mouse and keyboard. */
export async function visitBy(
  { screen, isProxied, ...own }: Person,
  { stage: given, onOutcome, open }: VisitBy,
): Promise<void> {
  await using undo = new AsyncDisposableStack()
  const stage = screen ? { ...given, desktop: await openScreen(screen, given) } : given
  if (screen) undo.defer(stage.desktop.close)
  const proxy = isProxied ? await openRewritingProxy() : undefined
  if (proxy) undo.defer(proxy.close)
  const person = proxy ? behind(proxy, own) : own
  const profile = path.join(stage.folder, 'profile')
  mkdirSync(profile, { recursive: true })
  const env = { ...surroundings(stage), MOZ_DISABLE_CONTENT_SANDBOX: '1', ...person.env }
  const group = person.isSlow ? createSlowGroup(stage.name) : undefined
  if (group) undo.defer(group.remove)
  void stage.visit.begun.then(group?.slowDown)
  const burners = Array.from({ length: person.busy ?? 0 }, () =>
    spawn(process.execPath, ['-e', 'for (;;);']),
  )
  undo.defer(() => {
    for (const burner of burners) burner.kill()
  })
  const opener = open(person, profile)
  const command = [...opener, person.extends ? 'about:blank' : stage.visit.url]
  const browser = startProgram({
    command: group?.within(command) ?? command,
    folder: stage.folder,
    env,
  })
  undo.defer(browser.stop)
  if (person.extends) await openLater(opener, { stage, env })
  onOutcome(await Promise.race([judged(stage, 'load'), browser.ended]))
  if (person.way === 'nothing') return
  const random = createSeededRandom(stage.seed, 'hand')
  await Promise.race([ways[person.way ?? 'mouse']({ person, stage, random }), browser.ended])
  onOutcome(await Promise.race([judged(stage, 'act'), browser.ended]))
}

function behind({ port }: RewritingProxy, person: Person): Person {
  const flags = [`--proxy-server=http://127.0.0.1:${port}`, '--proxy-bypass-list=<-loopback>']
  const settings = {
    'network.proxy.type': 1,
    'network.proxy.http': '127.0.0.1',
    'network.proxy.http_port': port,
    'network.proxy.allow_hijacking_localhost': true,
  }
  if (person.browser === 'Chromium')
    return { ...person, flags: [...(person.flags ?? []), ...flags] }
  return { ...person, settings: { ...person.settings, ...settings } }
}

/** Opens the page after the browser, because Chromium would load it before its extensions. */
async function openLater(
  opener: string[],
  { stage, env }: { stage: Stage; env: Record<string, string> },
) {
  await delay(4000)
  const [file = '', ...args] = opener
  spawn(file, [...args, stage.visit.url], { env: { ...process.env, ...env }, stdio: 'ignore' })
}

interface Hand {
  person: Person
  stage: Stage
  random: SeededRandom
}

const text = {
  name: 'maria lindqvist',
  email: 'maria.l@example.org',
  message: 'please call me back.',
}

async function byKeyboard({ stage, random }: Hand): Promise<void> {
  const say = (words: string[]) => stage.desktop.input(words, stage.signal)
  const tab = pressKey('Tab', random)
  await say([...pause(900), ...tab, ...typeText(text.name, random, { errs: true }), ...tab])
  await say([...typeText(text.email, random, { errs: false }), ...tab])
  await say([...typeText(text.message, random, { errs: true }), ...tab])
  await say([...pressKey('space', random), ...tab, ...pressKey('Down', random), ...tab])
  await say(pressKey('space', random))
}

async function byMouse({ person, stage, random }: Hand): Promise<void> {
  const { desktop, signal } = stage
  let at: Point = { x: random.int(300, 1500), y: random.int(300, 900) }
  const say = (words: string[]) => desktop.input(words, signal)
  const click = async (field: string) => {
    const to = await pointIn(field, { person, stage, random })
    await say([...moveTo(at, to, random), ...pause(random.between(60, 240)), ...press(random)])
    at = to
  }
  await say([
    'mousemove',
    String(at.x),
    String(at.y),
    ...pause(700),
    ...(person.first ?? []),
    ...pause(600),
  ])
  await click('name')
  await say(typeText(text.name, random, { errs: true }))
  await click('email')
  await say(typeText(text.email, random, { errs: false }))
  await click('message')
  await say(typeText(text.message, random, { errs: true }))
  await click('terms')
  await say([
    ...wheel(random.int(3, 6), random),
    ...pause(random.between(500, 900)),
    ...wheel(-12, random),
    ...pause(900),
  ])
  await click('send')
}

/** Acts like typical xdotool scripts. */
async function byJump({ person, stage, random }: Hand): Promise<void> {
  const say = (words: string[]) => stage.desktop.input(words, stage.signal)
  const click = async (field: string) => {
    const { x, y } = await pointIn(field, { person, stage, random })
    await say(['mousemove', String(x), String(y), 'click', '1', ...pause(random.between(200, 500))])
  }
  for (const [field, words] of Object.entries(text)) {
    await click(field)
    await say(['type', '--delay', '90', words])
  }
  await click('terms')
  await click('send')
}

const ways: Record<Way, (hand: Hand) => Promise<void>> = {
  mouse: byMouse,
  keyboard: byKeyboard,
  jump: byJump,
  extension: async () => {},
  nothing: async () => {},
}

/** Returns a point of the field on the screen. The page's area ends at the bottom of its window. */
async function pointIn(field: string, { person, stage, random }: Hand): Promise<Point> {
  if (person.isSlow) await calm(stage)
  const frame = await windowOf(person, stage)
  const layout = stage.visit.layout()
  const box = layout?.boxes[field]
  if (!layout || !box) throw new Error(`the page told no place of ${field}`)
  const left = box.left + box.width * random.between(0.2, 0.7)
  const top = box.top + box.height * random.between(0.25, 0.75)
  const ratio = person.ratio ?? layout.ratio
  const bottom = frame.y + frame.height - (person.browser === 'QtWebEngine' ? statusBar : 0)
  return {
    x: Math.round(frame.x + left * ratio),
    y: Math.round(bottom - (layout.height - top) * ratio),
  }
}

const calmMs = 2500

/** Waits until the layout is stable for a while, because people do not aim at moving fields. */
async function calm({ visit, signal }: Stage): Promise<void> {
  let before: unknown
  while (!signal.aborted && before !== visit.layout()) {
    before = visit.layout()
    await delay(calmMs)
  }
}

/** Height of qutebrowser's status bar, below the page. */
const statusBar = 22

async function windowOf({ browser }: Person, { desktop, signal }: Stage): Promise<Rectangle> {
  while (!signal.aborted) {
    const found = await desktop.window(classes[browser])
    if (found) return found
    await delay(200)
  }
  throw new Error(`there was no window of ${browser}`)
}
