/** Class of forgers by their knowledge and resources. The report shows the cost of each. */
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
    cost: 'a script that speaks the protocol',
  },
  repository: {
    title: 'answers from this repository',
    cost: 'a script, and a day to read the repository',
  },
  harvested: {
    title: 'harvested answers',
    cost: 'questions of 100 sessions, answered once by Chromium',
  },
  replay: {
    title: 'replay of one recorded visit',
    cost: 'one visit by hand, and the same answers',
  },
  collected: {
    title: "one address's questions of the day",
    cost: '30 visible sessions a day from that address, answered by Chromium',
  },
  oracle: {
    title: 'live oracle',
    cost: 'a running browser of the claimed engine, some milliseconds per session',
  },
  mass: {
    title: 'mass run',
    cost: 'one address',
  },
}

/** Class, claimed browser and means of a forged session. */
export interface Attack {
  class: AttackClass
  claim: string
  /** True if the deployment has learned the claimed engine. */
  isTaught: boolean
  hasInput: boolean
  /** True if the answers have the format of the claimed engine. */
  isPlausible: boolean
}
