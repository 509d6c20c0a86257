import type { RegisteredService } from './registered.ts'

export const systemServiceId = 'tidegate'

/** When it came to be, for whom it matters: services of organizations have such times. */
const since = Date.UTC(2026, 10, 21)

/** The built-in service: who signs up for it gets an organization of this server, with its keys. */
export function systemService(publicUrl: string): RegisteredService {
  return {
    id: systemServiceId,
    organization_id: null,
    environment: 'live',
    status: 'active',
    verified: true,
    definition: {
      name: 'Tidegate',
      description: 'Scores sessions for automation and fraud, and lets agents sign up with consent.',
      website: publicUrl,
      discoverable: true,
      webhook_endpoint_id: null,
      dashboard_login_url: null,
      docs_url: `${publicUrl}/docs`,
      env_vars: [
        { name: 'Organization', key: 'TIDEGATE_ORGANIZATION_ID', secret: false },
        { name: 'Publishable key', key: 'TIDEGATE_PUBLISHABLE_KEY', secret: false },
        { name: 'Secret key', key: 'TIDEGATE_SECRET_KEY', secret: true },
        { name: 'Publishable key for tests', key: 'TIDEGATE_TEST_PUBLISHABLE_KEY', secret: false },
        { name: 'Secret key for tests', key: 'TIDEGATE_TEST_SECRET_KEY', secret: true },
      ],
      sdks: [],
      branding: {
        logo_url: `${publicUrl}/assets/mark.svg`,
        primary_color: null,
        secondary_color: null,
        ascii_art: null,
      },
      consent: { terms_url: null, privacy_url: null },
    },
    created_at: since,
    updated_at: since,
  }
}
