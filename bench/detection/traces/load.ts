import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** Times in milliseconds, positions in pixels. */
export interface TraceEvent {
  type: 'move' | 'press' | 'release' | 'wheel'
  at: number
  x: number
  y: number
}

export interface Trace {
  name: string
  /** Derived from the path: DELBOT has recordings of people and bots. */
  by: 'person' | 'bot'
  events: TraceEvent[]
}

// Recorded hands for `make eval ARGS='--balabit DIR --delbot DIR'`; neither set is ours to ship. Balabit's is CSV with
// the columns `record timestamp,client timestamp,button,state,x,y`, in seconds. DELBOT's is a line
// `resolution:width,height` and then lines of `milliseconds,action,x,y`; what has `bot` in its path counts as a bot's.
export type TraceFormat = 'balabit' | 'delbot'

/** Returns all traces below a folder, split at long pauses. */
export function loadTraces(folder: string, format: TraceFormat): Trace[] {
  const files = globSync('**/*', { cwd: folder, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort()
  return files.flatMap((file) => {
    const name = path.relative(folder, file)
    const by = /bot/i.test(name) ? 'bot' : 'person'
    const events = readTrace(readFileSync(file, 'utf8'), format)
    return cut(events).map((piece, index) => ({ name: `${name}#${index}`, by, events: piece }))
  })
}

/**
 * A file of the Balabit Mouse Dynamics Challenge: CSV with the columns `record timestamp,client timestamp,button,state,
 * x,y`, times in seconds. Or one of DELBOT-Mouse: `resolution:width,height` (which may be missing), then lines of
 * `milliseconds,action,x,y`. Lines of any other shape are passed over.
 */
export function readTrace(text: string, format: TraceFormat): TraceEvent[] {
  const lines = text.split(/\r?\n/).map((line) => line.split(','))
  const read = format === 'balabit' ? balabitEvent : delbotEvent
  return lines.flatMap((cells) => read(cells) ?? [])
}

function balabitEvent([, seconds, , state = '', x, y]: string[]): TraceEvent | undefined {
  return eventOf({
    at: Number(seconds || 'none') * 1000,
    action: state,
    x: Number(x),
    y: Number(y),
  })
}

function delbotEvent([at, action = '', x, y, ...more]: string[]): TraceEvent | undefined {
  if (more.length > 0) return undefined
  return eventOf({ at: Number(at || 'none'), action, x: Number(x), y: Number(y) })
}

const actions: [RegExp, TraceEvent['type']][] = [
  [/^(Move|Drag)/i, 'move'],
  [/^Pressed/i, 'press'],
  [/^Released/i, 'release'],
  [/^(Scroll|Up$|Down$)/i, 'wheel'],
]
/** Balabit's value for an unknown position. */
const unknownPosition = 65_535

function eventOf(read: {
  at: number
  action: string
  x: number
  y: number
}): TraceEvent | undefined {
  const { at, action, x, y } = read
  const type = actions.find(([pattern]) => pattern.test(action))?.[1]
  const known = [at, x, y].every(Number.isFinite) && x < unknownPosition && y < unknownPosition
  return type && known ? { type, at, x, y } : undefined
}

const longestPauseMs = 5000
const longestMs = 30_000
/** Traces with fewer moves are ignored. */
const fewestMoves = 20

/** Splits a trace into parts of at most half a minute, like a visit. */
function cut(events: TraceEvent[]): TraceEvent[][] {
  const pieces: TraceEvent[][] = []
  for (const event of events) {
    const piece = pieces.at(-1)
    const [first, last] = [piece?.[0], piece?.at(-1)]
    const goesOn =
      first && last && event.at - last.at <= longestPauseMs && event.at - first.at <= longestMs
    if (piece && goesOn && event.at >= last.at) piece.push(event)
    else pieces.push([event])
  }
  return pieces.filter((piece) => piece.filter(({ type }) => type === 'move').length >= fewestMoves)
}
