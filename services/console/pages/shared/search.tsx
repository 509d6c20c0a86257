import { usePageKeys } from './keys.ts'

interface SearchProps {
  label: string
  placeholder: string
  value: string
  onSearch: (text: string) => void
}

/** The page's search field; `/` focuses it. */
export function Search({ label, placeholder, value, onSearch }: SearchProps) {
  usePageKeys((event) => {
    if (event.key !== '/') return
    event.preventDefault()
    document.getElementById('search')?.focus()
  }, [])
  return (
    <search>
      <form
        class="search"
        onSubmit={(event) => {
          event.preventDefault()
          onSearch(String(new FormData(event.currentTarget).get('search') ?? '').trim())
        }}
      >
        <input
          key={value}
          id="search"
          type="search"
          name="search"
          aria-label={label}
          placeholder={placeholder}
          defaultValue={value}
        />
      </form>
    </search>
  )
}
