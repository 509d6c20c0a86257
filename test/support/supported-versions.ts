/** The oldest and the newest that the docs name and the log is tested on. */
export const supported = { kafka: ['3.9.2', '4.4.0'], postgresql: ['15', '18'] } as const
