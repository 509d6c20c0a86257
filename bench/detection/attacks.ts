/** A kind of forger by what they know and own. The report says what each takes. */
export type AttackClass =
  | 'junk'
  | 'repository'
  | 'harvested'
  | 'replay'
  | 'collected'
  | 'oracle'
  | 'mass'

export const attackClasses: Record<AttackClass, { title: string; cost: string }> = {
  junk: {
    title: 'invented answers',
    cost: 'A script and the format of the SDK. No browser, no repository.',
  },
  repository: {
    title: 'answers from this repository',
    cost: 'A script that imports this repository, and a day to read it. No browser.',
  },
  harvested: {
    title: 'harvested answers',
    cost: '100 openings, and one headless Chromium that answers their questions once. Then a script.',
  },
  replay: {
    title: 'replays of one visit, with answers from this repository',
    cost: 'One visit by hand whose bodies are kept, a script, and this repository.',
  },
  collected: {
    title: "a table of one address's questions of the day",
    cost: '30 visible sessions from the address each day, and one headless Chromium that answers their questions once. Then a script.',
  },
  oracle: {
    title: 'a live oracle',
    cost: 'A real browser of the claimed engine that runs all the time, some milliseconds of it per session, and a script.',
  },
  mass: {
    title: '40 sessions from one address in ten seconds',
    cost: 'As above, and only one address.',
  },
}

/** The class, claim and means that a forged session stands for. */
export interface Attack {
  class: AttackClass
  claim: string
  /** The deployment has been taught the claimed engine. */
  isTaught: boolean
  hasInput: boolean
  /** Its answers have the form of the claimed engine's. */
  isPlausible: boolean
}
