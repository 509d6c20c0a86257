import { applyBranding } from './branding.js'
import { el } from './dom.js'
import { initialState } from './state.js'
import { createView } from './view.js'

// Shows a service's consent page with sample data. Nothing can be approved here.

const [serviceId, environment = ''] = location.pathname.split('/').toReversed()
const darkScheme = matchMedia('(prefers-color-scheme: dark)')

const response = await fetch(`../../api/gate/services/${serviceId}/consent-preview`, {
  headers: { 'tidegate-environment': environment },
})
const { data, error } = await response.json().catch(() => ({}))
const note = data
  ? 'Preview with sample data. The buttons do nothing.'
  : (error?.message ?? `The server returned status ${response.status}.`)
document.querySelector('.top')?.after(el('p', { class: 'notice note warn', role: 'status' }, note))
if (data) {
  const view = createView({ dispatch: () => {}, clock: Date.now })
  view.show({ ...initialState, view: 'review', consent: data })
  for (const button of document.querySelectorAll('#approve, #decline'))
    button.setAttribute('aria-disabled', 'true')
  const brand = () => applyBranding(data.service.branding)
  brand()
  darkScheme.addEventListener('change', brand)
} else {
  document.querySelector('main')?.remove()
}
