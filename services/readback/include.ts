import { z } from 'zod'

/** The parameter by which members are asked for that are left out otherwise. `does` says what each name adds. */
export const includeParameter = (does: string) =>
  z
    .union([z.string(), z.array(z.string())])
    .optional()
    .describe(`${does} Anything else adds nothing.`)

export const isIncluded = (include: string | string[] | undefined, name: string): boolean =>
  [include].flat().includes(name)
