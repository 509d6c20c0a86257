import { useEffect } from 'preact/hooks'
import { hrefOf, hrefWith, navigate } from '../shared/address.ts'
import { usePageKeys } from '../shared/keys.ts'
import type { Selection } from './selection.ts'

interface RowKeys {
  ids: readonly string[]
  openSessionId: string | null
  selection: Selection
}

const focusRow = (id: string) =>
  document.querySelector<HTMLElement>(`tr[data-id="${CSS.escape(id)}"] .open`)?.focus()

/** Moves through the rows with `j` and `k`, and opens, selects and closes by keys. The focus is the current row. */
export function useRowKeys({ ids, openSessionId, selection }: RowKeys): void {
  usePageKeys(
    (event) => {
      const { key, shiftKey, target } = event
      const element = target instanceof Element ? target : document.body
      const current = element.closest<HTMLElement>('tr[data-id]')?.dataset.id ?? openSessionId
      const open = (id: string) =>
        navigate(hrefWith({ open: id }), { replace: openSessionId !== null })
      const step = { j: 1, k: -1 }[key]
      const next = step && ids[current ? ids.indexOf(current) + step : 0]
      if (next) {
        focusRow(next)
        if (openSessionId) open(next)
      }
      if (key === 'Escape' && selection.ids.length > 0 && (selection.isNewest || !openSessionId))
        selection.set([])
      else if (key === 'Escape' && openSessionId) navigate(hrefWith({ open: null }))
      if (!current) return
      if (key === 'x') selection.toggle(current, { ids, isRange: false })
      if (key === 'o' || (key === 'Enter' && shiftKey)) {
        event.preventDefault()
        navigate(hrefOf({ page: 'sessions', id: current }))
      } else if (key === 'Enter' && element.matches('body, [type="checkbox"]')) open(current)
    },
    [ids.join(), openSessionId, selection.ids],
  )
  // When the drawer closes, the focus returns to its row.
  useEffect(
    () => () => {
      if (openSessionId && document.activeElement === document.body) focusRow(openSessionId)
    },
    [openSessionId],
  )
}
