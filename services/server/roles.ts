export const allRoles = ['collect', 'scoring', 'projections', 'api', 'gate', 'webhooks'] as const
export type Role = (typeof allRoles)[number]

export function parseRoles(text: string): Role[] {
  return text.split(',').map((name) => {
    const role = allRoles.find((known) => known === name.trim())
    if (!role) throw new Error(`--roles: ${name} is not one of ${allRoles.join(', ')}`)
    return role
  })
}
