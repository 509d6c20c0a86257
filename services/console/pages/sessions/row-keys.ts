import { hrefOf, hrefWith, navigate } from '../shared/address.ts'
import { useFocusOnClose, usePageKeys } from '../shared/keys.ts'
import { type Selection, shownSessionId } from './selection.ts'

const focusRow = (id: string) =>
  document.querySelector<HTMLElement>(`tr[data-id="${CSS.escape(id)}"] .open`)?.focus()

/** Shows a session in the drawer. Going back closes it, regardless of how many were shown. */
export const showSession = (id: string): void =>
  navigate(hrefWith({ open: id }), { replace: shownSessionId() !== null })

/** Moves through the rows with `j` and `k`, and opens, selects and closes by keys. The focus is the current row. */
export function useRowKeys(ids: readonly string[], selection: Selection): void {
  usePageKeys(
    (event) => {
      const { key, shiftKey, target } = event
      const element = target instanceof Element ? target : document.body
      const shown = shownSessionId()
      const current = element.closest<HTMLElement>('tr[data-id]')?.dataset.id ?? shown
      const step = { j: 1, k: -1 }[key]
      const next = step && ids[current ? ids.indexOf(current) + step : 0]
      if (next) {
        focusRow(next)
        if (shown) showSession(next)
      }
      if (key === 'Escape' && selection.ids().length > 0 && (!shown || selection.isNewest()))
        selection.set([])
      else if (key === 'Escape' && shown) navigate(hrefWith({ open: null }))
      if (!current) return
      if (key === 'x') selection.toggle(current, { ids, isRange: false })
      if (key === 'Enter' && shiftKey) {
        event.preventDefault()
        navigate(hrefOf({ page: 'sessions', id: current }))
      } else if (key === 'Enter' && element.matches('body, #main, [type="checkbox"]'))
        showSession(current)
    },
    [ids.join()],
  )
  useFocusOnClose(shownSessionId(), focusRow)
}
