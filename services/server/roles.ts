export const allRoles = ['collect', 'scoring', 'projections', 'api', 'gate', 'webhooks'] as const
export type Role = (typeof allRoles)[number]

export function parseRoles(text: string): Role[] {
  return text.split(',').map((name) => {
    const role = allRoles.find((candidate) => candidate === name.trim())
    if (!role) throw new Error(`--roles must be from ${allRoles.join(', ')}, got "${name}"`)
    return role
  })
}
